import { completionWord, filesAnswer } from './completion.js'

// The scripts that `kpng completion <shell>` prints. They only ask kpng and show its answer, and need no package beside the shell.

const programs = ['kpng', 'kpng-json', 'kpng-callout']

// COMP_LINE is used instead of COMP_WORDS, since bash splits words at ":" and "=" too; what it has split off must not be repeated in
// the answer.
const bash = `# kpng completion for bash. Load it with: source <(kpng completion bash)
_kpng_completion() {
  local line="\${COMP_LINE:0:COMP_POINT}" words current candidate answer
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current="\${words[\${#words[@]}-1]}"
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate answer; do
    if [[ $candidate == ${filesAnswer} ]]; then
      compopt -o default 2>/dev/null
      return
    fi
    [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && candidate="\${candidate#*=}"
    COMPREPLY+=("$candidate")
  done < <("$1" ${completionWord} "\${words[@]:1}" 2>/dev/null)
}
complete -F _kpng_completion ${programs.join(' ')}
`

const zsh = `#compdef ${programs.join(' ')}
# kpng completion for zsh. Load it with: source <(kpng completion zsh)
_kpng() {
  local -a lines described
  local line
  lines=("\${(@f)$("$words[1]" ${completionWord} "\${(@)words[2,$CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    if [[ $line == ${filesAnswer} ]]; then
      _files
      return
    fi
    if [[ $line == *$'\\t'* ]]; then
      described+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    elif [[ -n $line ]]; then
      described+=("\${line//:/\\\\:}")
    fi
  done
  (( $#described )) && _describe kpng described
}
if (( ! $+functions[compdef] )); then
  autoload -Uz compinit
  compinit
fi
compdef _kpng ${programs.join(' ')}
`

const fish = `# kpng completion for fish. Load it with: kpng completion fish | source
function __kpng_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -l answer ($program ${completionWord} $words[2..] (commandline -ct) 2>/dev/null)
    if test "$answer[1]" = ${filesAnswer}
        __fish_complete_path (string replace -r '^-[^=]*=' '' -- (commandline -ct))
    else if test (count $answer) -gt 0
        printf '%s\\n' $answer
    end
end
${programs.map((program) => `complete -c ${program} -f -a '(__kpng_complete)'`).join('\n')}
`

// A completer that returns nothing makes PowerShell offer files.
const powershell = `# kpng completion for PowerShell. Load it with: kpng completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName ${programs.join(', ')} -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    $program, $rest = $words
    $rest = @($rest)
    if ($wordToComplete -eq '') { $rest += '""' }
    & $program ${completionWord} @rest 2>$null | Where-Object { $_ -ne '${filesAnswer}' } | ForEach-Object {
        $candidate, $description = $_ -split "\`t", 2
        if (-not $description) { $description = $candidate }
        [System.Management.Automation.CompletionResult]::new($candidate, $candidate, 'ParameterValue', $description)
    }
}
`

export const completionScripts: Readonly<Record<string, string>> = { bash, zsh, fish, powershell }
