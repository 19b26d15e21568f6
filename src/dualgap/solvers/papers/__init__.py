"""Methods of the papers, which a user names: `auto` never chooses one."""
