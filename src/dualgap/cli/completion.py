"""Completion of commands, options and their words in bash, zsh and fish."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import COMMANDS, command_of
from .parser import UsageError

_SCRIPTS = {
    "bash": """_dualgap() {
  local IFS=$'\\n'
  COMPREPLY=($(dualgap --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _dualgap dualgap""",
    "zsh": """(( $+functions[compdef] )) || { autoload -U compinit && compinit }
_dualgap() {
  local -a found
  found=(${(f)"$(dualgap --complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _dualgap dualgap""",
    "fish": """function __dualgap
  set -l words (commandline -opc)[2..-1] (commandline -ct)
  set -l found (dualgap --complete $words 2>/dev/null)
  if count $found >/dev/null
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c dualgap -f -a '(__dualgap)'""",
}


def run(option: str, words: Sequence[str]) -> int:
    """Print the script of a shell, or what completes the words of a line."""
    if option == "--complete":
        *before, last = words or [""]
        last = "" if last == "=" else last  # bash makes three words of --name=word
        found = [word for word in _words(before, last) if word.startswith(last)]
        if found:
            print("\n".join(found))
    elif words and words[0] in _SCRIPTS:
        print(_SCRIPTS[words[0]])
    else:
        raise UsageError(
            "--completion needs a shell, bash, zsh or fish: "
            'eval "$(dualgap --completion bash)"'
        )
    return 0


def _words(before: Sequence[str], last: str) -> Iterable[str]:
    """Return what may follow some words; none of it means that files may."""
    if not before or before == ["help"]:
        options = ["--help", "--version", "--completion"] if last[:1] == "-" else []
        return [*COMMANDS, *options]
    if before[0] not in COMMANDS:
        return _SCRIPTS if before == ["--completion"] else []
    command, _ = command_of(before[0])
    known = command.known
    name, equals, _ = last.partition("=")
    if equals and name in known:
        return [f"{name}={word}" for word in known[name].words]
    option = known.get([word for word in before if word != "="][-1])
    if option is not None and option.read is not None:
        return option.words
    if last[:1] == "-":
        return [name for name in (*known, "--help") if name[:2] == "--"]
    return [word for argument in command.arguments for word in argument.words]
