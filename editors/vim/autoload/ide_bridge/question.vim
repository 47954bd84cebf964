vim9script
# A question for permission in words: what is asked, what may be answered, and how it ended.
#
# It does not know where it is shown, or how it is answered.

import autoload 'ide_bridge/lines.vim'

const INPUT = 20  # lines shown of each thing that a tool is given
const INDENT = '    '

# The tools whose change of a file can be shown.
export const CHANGES = ['Edit', 'MultiEdit', 'Write']

# All that is to be read, with the keys that answer it.
export def Lines(approval: dict<any>): list<string>
  return [$'? {lines.One(approval.title)} [{approval.id}]'] + lines.Indented(Details(approval), INDENT)
    + ['  ' .. Keys(approval)]
enddef

def Details(approval: dict<any>): list<string>
  if approval.kind ==# 'question'
    return approval.input->get('questions', [])->mapnew((_, asked) => Choices(asked))->flattennew()
  elseif approval.kind ==# 'plan'
    return lines.Of(approval.input->get('plan', ''))
  endif
  var shown: list<string> = []
  for [name, value] in approval.input->items()->sort()
    shown += Named(name, value)
  endfor
  for name in ['description', 'reason', 'blockedPath']
    if lines.Has(approval, name)
      shown += Named({blockedPath: 'blocked path'}->get(name, name), approval[name])
    endif
  endfor
  return shown
enddef

export def Choices(asked: dict<any>): list<string>
  return [lines.One(asked.question)] + asked->get('options', [])->mapnew((index, option) =>
    $'{index + 1}. {lines.One(option.label)}'
      .. (lines.Has(option, 'description') ? ': ' .. lines.One(option.description) : ''))
enddef

def Named(name: string, value: any): list<string>
  const shown = lines.Of(type(value) == v:t_string ? value : json_encode(value))
  if len(shown) == 1
    return [$'{name}: {shown[0]}']
  endif
  return [name .. ':'] + lines.Indented(lines.Cut(shown, INPUT, 'e'), '  ')
enddef

def Keys(approval: dict<any>): string
  if approval.kind ==# 'question'
    return 'a answer · d deny'
  elseif approval.kind ==# 'plan'
    return 'a allow · d deny'
  endif
  const session = empty(approval->get('suggestions', [])) ? [] : ['A allow for the session']
  const change = CHANGES->index(approval.tool) < 0 ? [] : ['= show the change']
  return (['a allow'] + session + ['d deny', 'e edit'] + change)->join(' · ')
enddef

# How a question for permission ended, in words.
export def Outcome(closed: dict<any>): string
  const by = lines.Has(closed, 'by') ? $' by {closed.by}' : ''
  const reason = lines.Has(closed, 'reason') ? $' ({lines.One(closed.reason)})' : ''
  return closed.outcome .. by .. reason
enddef
