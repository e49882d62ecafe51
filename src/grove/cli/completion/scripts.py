"""The scripts that shells load: they ask `grove __complete` what may follow."""

from __future__ import annotations

BASH = r"""# bash completion of grove: source <(grove completion bash)
_grove() {
    local current=${COMP_WORDS[COMP_CWORD]} answer line word
    answer=$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return 0
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :0) compopt -o default 2>/dev/null; COMPREPLY=(); return 0 ;;
            :*) ;;
            *)
                word=${line%%$'\t'*}
                [[ $word == "$current"* ]] && COMPREPLY+=("$word") ;;
        esac
    done <<<"$answer"
}
complete -F _grove grove
"""

ZSH = r"""#compdef grove
# zsh completion of grove: source <(grove completion zsh), after compinit
_grove() {
    local answer line
    local -a candidates
    answer=$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null) || return 1
    for line in "${(@f)answer}"; do
        case $line in
            :0) _files; return ;;
            :*) ;;
            *) candidates+=("${${line//:/\\:}/$'\t'/:}") ;;
        esac
    done
    _describe 'grove' candidates
}
if [ "$funcstack[1]" = _grove ]; then _grove; else compdef _grove grove; fi
"""

FISH = r"""# fish completion of grove: grove completion fish | source
function __grove_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l answer (grove __complete $words[2..-1] 2>/dev/null)
    or return
    for line in $answer
        switch $line
            case ':0'
                __fish_complete_path (commandline -ct)
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c grove -f -a '(__grove_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
