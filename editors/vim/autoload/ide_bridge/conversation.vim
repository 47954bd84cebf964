vim9script
# A conversation as lines to read: what happens in a session, one block of lines for each thing.
#
# Most blocks are added at the end; an answer grows while it is said, a tool gets its result, a question its
# answer. Whoever shows the lines takes what has changed since he last did.
#
# It does not know buffers, windows or the bridge.

import autoload 'ide_bridge/lines.vim'
import autoload 'ide_bridge/question.vim'

const LINES = 5000  # the oldest blocks go when there are more
const PROMPT = 12  # lines shown of what was asked
const RESULT = 5  # of what a tool gives
const INDENT = '    '

# By their names: `blocks`, and those with a key once more in `keyed`; `live` is the block of an answer that is
# being said, `height` counts all lines, `fresh` is the first line that was not taken yet, `dropped` how many went
# at the top since. A story is never handed to a function, nor counted up with `+=`: Vim would look through all of
# it each time to know its type.
var stories: dict<any> = {}

# Begin a story, or begin it anew.
export def Begin(name: string)
  stories[name] = {blocks: [], keyed: {}, live: null_dict, height: 0, fresh: 0, dropped: 0}
enddef

# What has changed: so many lines at the top are gone, and from line `from` (0 is the first) on there are these.
export def Take(name: string): dict<any>
  var story: any = stories[name]
  const from: number = story.fresh
  var content: list<string> = []
  var [index, first] = [len(story.blocks), story.height]
  while first > from
    index -= 1
    first -= len(story.blocks[index].lines)
  endwhile
  for block in story.blocks[index :]
    content += first < from ? block.lines[from - first :] : block.lines
    first += len(block.lines)
  endfor
  const change = {dropped: story.dropped, from: from, lines: content}
  [story.fresh, story.dropped] = [story.height, 0]
  return change
enddef

# All of it is to be taken again.
export def Again(name: string)
  stories[name].fresh = 0
  stories[name].dropped = 0
enddef

# The block a line (0 is the first one) belongs to, by its key; empty when it has none.
export def KeyAt(name: string, line: number): string
  var story: any = stories[name]
  var [index, first] = [len(story.blocks), story.height]
  while index > 0 && first > line
    index -= 1
    first -= len(story.blocks[index].lines)
  endwhile
  return index < len(story.blocks) ? story.blocks[index].key : ''
enddef

# -- what happens ---------------------------------------------------------------------------------------------

# One event, as the bridge tells it. What is not known is not shown.
export def Add(name: string, event: dict<any>)
  if event.kind ==# 'text'
    Piece(name, event)
  elseif event.kind ==# 'said'
    Said(name, event)
  elseif event.kind ==# 'prompt'
    Prompt(name, event)
  elseif event.kind ==# 'thinking'
    Thought(name, event)
  elseif event.kind ==# 'tool'
    Tool(name, event)
  elseif event.kind ==# 'toolResult'
    ToolResult(name, event)
  elseif event.kind ==# 'approval'
    Asked(name, event)
  elseif event.kind ==# 'approvalClosed'
    Closed(name, event)
  elseif event.kind ==# 'result'
    Result(name, event)
  elseif event.kind ==# 'notice'
    Noticed(name, event)
  elseif event.kind ==# 'ended'
    Ended(name, event)
  endif
  Forget(name)
enddef

def Prompt(name: string, event: dict<any>)
  var story: any = stories[name]
  story.live = null_dict
  const by = event->get('by', '')
  const content = lines.Cut(lines.Of(event.text), PROMPT)
  const whose = by == '' || by ==# 'Vim' ? '' : $'({by}) '
  Append(name, 'prompt', '', [$'❯ {whose}{content[0]}'] + lines.Indented(content[1 :], '  '))
enddef

def Piece(name: string, event: dict<any>)
  var story: any = stories[name]
  if story.live is null_dict
    story.live = Append(name, 'said', '', [''])
  endif
  var block: any = story.live
  const pieces = lines.Of(block.lines[-1] .. event.text)
  Touch(name, First(name, block) + len(block.lines) - 1)
  remove(block.lines, -1)
  extend(block.lines, pieces)
  story.height = story.height + len(pieces) - 1
enddef

def Said(name: string, event: dict<any>)
  var story: any = stories[name]
  const content = lines.Of(event.text)
  if lines.Has(event, 'agent')
    Append(name, 'said', '', lines.Indented(content, '  '))
  elseif story.live is null_dict
    Append(name, 'said', '', content)
  else
    Replace(name, story.live, content)
    story.live = null_dict
  endif
enddef

def Thought(name: string, event: dict<any>)
  Append(name, 'thought', '', ['✻ ' .. lines.Cut(lines.Of(trim(event.text)), 1)->join(' ')])
enddef

def Tool(name: string, event: dict<any>)
  var story: any = stories[name]
  story.live = null_dict
  const agent = lines.Has(event, 'agent') ? '  ' : ''
  var block = Append(name, 'tool', 'tool:' .. event.id, [$'{agent}● {lines.One(event.title)}'])
  block.title = lines.One(event.title)
  block.agent = agent
enddef

def ToolResult(name: string, event: dict<any>)
  var story: any = stories[name]
  var block: any = story.keyed->get('tool:' .. event.id, null_dict)
  if block is null_dict
    return
  endif
  const text = event.text->substitute('\_s*$', '', '')
  const content = text == '' ? [] : lines.Indented(lines.Cut(lines.Of(text), RESULT), block.agent .. INDENT)
  Replace(name, block, [$'{block.agent}{event.ok ? "✓" : "✗"} {block.title}'] + content)
enddef

def Asked(name: string, event: dict<any>)
  var block = Append(name, 'approval', 'approval:' .. event.approval.id, question.Lines(event.approval))
  block.title = lines.One(event.approval.title)
enddef

def Closed(name: string, event: dict<any>)
  var story: any = stories[name]
  var block: any = story.keyed->get('approval:' .. event.approval, null_dict)
  if block isnot null_dict
    const mark = event.outcome ==# 'allowed' ? '✓' : '✗'
    Replace(name, block, [$'{mark} {block.title}: {question.Outcome(event)}'])
    block.key = ''
    story.keyed->remove('approval:' .. event.approval)
  endif
enddef

# Nobody can answer any more what is still asked.
export def Withdraw(name: string)
  for key in stories[name].keyed->keys()->filter((_, key) => key =~# '^approval:')
    Closed(name, {approval: key->substitute('^approval:', '', ''), outcome: 'withdrawn'})
  endfor
enddef

def Result(name: string, event: dict<any>)
  var story: any = stories[name]
  story.live = null_dict
  const cost = lines.Has(event, 'cost') ? printf(', $%.4f', event.cost) : ''
  const spent = printf('%.1f s%s', event.seconds, cost)
  const reason = lines.Has(event, 'reason') ? event.reason : event->get('text', '')
  Append(name, 'result', '', [event.ok ? $'— done: {spent}' : $'— not done: {lines.One(reason)} ({spent})'])
enddef

def Noticed(name: string, event: dict<any>)
  Append(name, 'notice', '', ['! ' .. lines.One(event.text)])
enddef

def Ended(name: string, event: dict<any>)
  var story: any = stories[name]
  story.live = null_dict
  const why = lines.Has(event, 'text') ? ': ' .. lines.One(event.text) : ''
  Append(name, 'notice', '', [$'— the session has ended{why}; <CR> asks again and resumes it'])
enddef

# -- blocks ---------------------------------------------------------------------------------------------------

# Calls of tools stand together; everything else has an empty line before it.
def Append(name: string, kind: string, key: string, content: list<string>): any
  var story: any = stories[name]
  const before = empty(story.blocks) ? kind : story.blocks[-1].kind
  const lead = empty(story.blocks) || (kind ==# 'tool' && before ==# 'tool') ? [] : ['']
  var block: any = {kind: kind, key: key, lead: lead, lines: lead + content}
  Touch(name, story.height)
  story.blocks->add(block)
  story.height = story.height + len(block.lines)
  if key != ''
    story.keyed[key] = block
  endif
  return block
enddef

def Replace(name: string, block: any, content: list<string>)
  var story: any = stories[name]
  const now = block.lead + content
  if now !=# block.lines
    Touch(name, First(name, block))
    story.height = story.height + len(now) - len(block.lines)
    block.lines = now
  endif
enddef

def Touch(name: string, line: number)
  var story: any = stories[name]
  story.fresh = min([story.fresh, line])
enddef

# Where a block begins; it is most often one of the last.
def First(name: string, wanted: any): number
  var story: any = stories[name]
  var [index, first] = [len(story.blocks) - 1, story.height - len(story.blocks[-1].lines)]
  while story.blocks[index] isnot wanted
    index -= 1
    first -= len(story.blocks[index].lines)
  endwhile
  return first
enddef

def Forget(name: string)
  var story: any = stories[name]
  while story.height > LINES && len(story.blocks) > 1
    const block = story.blocks->remove(0)
    const count = len(block.lines)
    story.height = story.height - count
    story.dropped = story.dropped + min([count, story.fresh])
    story.fresh = max([0, story.fresh - count])
    if block.key != ''
      story.keyed->remove(block.key)
    endif
  endwhile
enddef
