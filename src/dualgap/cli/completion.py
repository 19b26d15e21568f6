"""Completion of commands, options and their words in bash, zsh and fish."""

from __future__ import annotations

from collections.abc import Sequence

from . import COMMANDS, command_of
from .parser import UsageError

_BASH = """_dualgap() {
  local IFS=$'\\n'
  COMPREPLY=($(dualgap --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _dualgap dualgap"""
_SCRIPTS = {
    "bash": _BASH,
    "zsh": f"autoload -U +X bashcompinit && bashcompinit\n{_BASH}",
    "fish": "complete -c dualgap -a "
    "'(dualgap --complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'",
}


def run(option: str, words: Sequence[str]) -> int:
    """Print the script of a shell, or what completes the words of a line."""
    if option == "--complete":
        print("\n".join(_candidates(words or [""])))
    elif words and words[0] in _SCRIPTS:
        print(_SCRIPTS[words[0]])
    else:
        raise UsageError(
            "--completion needs a shell, bash, zsh or fish: "
            'eval "$(dualgap --completion bash)"'
        )
    return 0


def _candidates(words: Sequence[str]) -> list[str]:
    if len(words) == 1:
        return [name for name in COMMANDS if name.startswith(words[0])]
    if words[0] not in COMMANDS:
        return []
    return list(command_of(words[0])[0].complete(words[1:]))
