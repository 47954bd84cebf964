vim9script
# Approvals: what Claude wants to be allowed, until somebody answers, here or elsewhere; the first answer counts.
#
# Nothing here waits for the user: he is told in a line, and answers by a command or by a key when he likes.
#
# It does not know what allowing something does.

import autoload 'ide_bridge/change.vim'
import autoload 'ide_bridge/editing.vim'
import autoload 'ide_bridge/events.vim'
import autoload 'ide_bridge/link.vim'
import autoload 'ide_bridge/page.vim'
import autoload 'ide_bridge/question.vim'
import autoload 'ide_bridge/say.vim'
import autoload 'ide_bridge/sessions.vim'

const LIST = 'ide-bridge://approvals'
const LEFT_OPEN = "\<Esc>"
const TOO_QUICK = 0.3  # s in which nobody can have read what is asked now

var open: dict<dict<any>> = {}
var listed: list<dict<any>> = []  # in the order of the lines of the list
var mine: dict<bool> = {}  # those that are just being answered here
var changed = reltime()  # when there was last something else to answer than before

export def Count(): number
  return len(open)
enddef

# -- what the bridge tells ------------------------------------------------------------------------------------

export def Asked(approval: dict<any>)
  if open->has_key(approval.id)
    return
  endif
  open[approval.id] = approval
  changed = reltime()
  say.Warning($'Claude asks (:IdeBridgeApprove {approval.id}, :IdeBridgeDeny {approval.id}): {approval.title}')
  sessions.Look()
  redrawstatus!
  events.Raise('ApprovalAsked', approval)
enddef

# `approval` is the id of one that is over, `outcome`, `by` and `reason` tell how.
export def Closed(closed: dict<any>)
  if !open->has_key(closed.approval)
    return
  endif
  const approval = open->remove(closed.approval)
  if !mine->has_key(approval.id)
    changed = reltime()
    say.Info($'{question.Outcome(closed)}: {approval.title}')
  endif
  editing.Forget(approval.id)
  redrawstatus!
  events.Raise('ApprovalClosed', closed)
enddef

# Vim has just been attached: something may have been asked before. A bridge without sessions is not bothered.
export def Begin()
  link.Request('status', {}, (answer) => {
    const live: list<dict<any>> = answer->get('result', {})->get('sessions', [])
    if !empty(live->mapnew((_, session) => session->get('approvals', []))->flattennew())
      Look()
    endif
  })
enddef

# Ask which are open: those that came before, and those that went unheard with a bridge that died.
export def Look()
  link.Request('approvals', {}, (answer) => {
    const told: list<dict<any>> = answer->get('result', [])
    const ids = told->mapnew((_, approval) => approval.id)
    for approval in told
      Asked(extend(approval, {has_nul: answer.has_nul}))
    endfor
    for id in open->keys()->filter((_, id) => ids->index(id) < 0)
      Closed({approval: id, outcome: 'withdrawn'})
    endfor
  })
enddef

export def Reset()
  [open, mine] = [{}, {}]
  redrawstatus!
enddef

# -- answering ------------------------------------------------------------------------------------------------

# :IdeBridgeApprove; with the "!" for the session.
export def Approve(named: string, for_session: bool)
  const approval = Meant(named)
  if !empty(approval)
    Allow(approval, for_session)
  endif
enddef

# :IdeBridgeDeny [id] [reason]
export def Deny(words: string)
  const first = matchstr(words, '^\S*')
  const is_named = open->has_key(first)
  const approval = Meant(is_named ? first : '')
  if !empty(approval)
    Decide(approval, {behavior: 'deny', reason: is_named ? matchstr(words, '^\S*\s*\zs.*') : words})
  endif
enddef

def Allow(approval: dict<any>, for_session: bool)
  if approval->get('has_nul', false)
    say.Error('it has NUL characters, which Vim cannot show: answer it elsewhere, or deny it')
  elseif approval.kind ==# 'question'
    const answers = Answers(approval.input->get('questions', []))
    if !empty(answers)
      Decide(approval, {behavior: 'allow', answers: answers})
    endif
  else
    Decide(approval, {behavior: 'allow'}->extend(for_session ? {forSession: true} : {}))
  endif
enddef

export def Decide(approval: dict<any>, answer: dict<any>)
  mine[approval.id] = true
  sessions.Call('decide', extend({approval: approval.id}, answer), (decided) => {
    Closed({approval: approval.id, outcome: decided.outcome, by: decided.by,
      reason: answer->get('reason', '')})
    Settled(approval.id)
    say.Info($'{decided.outcome}: {approval.title}')
  }, () => {
    Settled(approval.id)
    Look()
  })
enddef

def Settled(id: string)
  if mine->has_key(id)
    mine->remove(id)
  endif
enddef

# One answer to each question, by the question; none when the user leaves one out.
def Answers(questions: list<dict<any>>): dict<string>
  var answers: dict<string> = {}
  for asked in questions
    const choices = question.Choices(asked)
    const several = asked->get('multiSelect', false) ? '; several as 1,2' : ''
    echo choices->join("\n") .. "\n"
    const typed = input($'Number, or your own words{several}: ')->trim()
    redraw
    if typed == ''
      return {}
    endif
    answers[asked.question] = Chosen(asked, typed)
  endfor
  return answers
enddef

def Chosen(asked: dict<any>, typed: string): string
  const labels = asked->get('options', [])->mapnew((_, option) => option.label)
  if typed !~# '^\d\+\%(\s*,\s*\d\+\)*$'
    return typed
  endif
  const numbers = typed->split('\s*,\s*')->mapnew((_, number) => str2nr(number))
  if !empty(numbers->copy()->filter((_, number) => number < 1 || number > len(labels)))
    return typed
  endif
  return numbers->mapnew((_, number) => labels[number - 1])->join(', ')
enddef

# -- by keys --------------------------------------------------------------------------------------------------

export def MapKeys()
  nnoremap <buffer> <silent> <nowait> a <ScriptCmd>WithOne((one) => Allow(one, false))<CR>
  nnoremap <buffer> <silent> <nowait> A <ScriptCmd>WithOne((one) => Allow(one, true))<CR>
  nnoremap <buffer> <silent> <nowait> d <ScriptCmd>WithOne(DenyWithReason)<CR>
  nnoremap <buffer> <silent> <nowait> e <ScriptCmd>WithOne(editing.Open)<CR>
  nnoremap <buffer> <silent> <nowait> = <ScriptCmd>WithOne(change.Show)<CR>
enddef

def WithOne(Action: func(dict<any>))
  const approval = Meant(Here())
  if empty(approval)
    return
  elseif reltimefloat(reltime(changed)) < TOO_QUICK
    say.Warning($'what is asked has just changed; press it again if you mean this: {approval.title}')
  else
    Action(approval)
  endif
enddef

def DenyWithReason(approval: dict<any>)
  const reason = inputdialog('Deny it, because: ', '', LEFT_OPEN)
  redraw
  if reason !=# LEFT_OPEN
    Decide(approval, {behavior: 'deny', reason: reason})
  endif
enddef

# The id of the one under the cursor; empty when there is none.
def Here(): string
  return bufname() ==# LIST ? listed->get(line('.') - 1, {})->get('id', '') : sessions.ApprovalHere()
enddef

# The one named, else the only one, in the window of a session the only one there; none, and said so, when that is
# not clear.
def Meant(named: string): dict<any>
  if named != ''
    if !open->has_key(named)
      say.Error($'{named} is not open; :IdeBridgeApprovals lists what is')
    endif
    return open->get(named, {})
  endif
  const session = sessions.Here()
  const candidates = open->values()->filter((_, approval) => session == '' || approval.session ==# session)
  if len(candidates) == 1
    return candidates[0]
  endif
  say.Error(empty(candidates) ? 'nothing is asked' : 'several things are asked; :IdeBridgeApprovals lists them')
  return {}
enddef

# -- the list -------------------------------------------------------------------------------------------------

# :IdeBridgeApprovals
export def List()
  listed = open->values()->sort((a, b) => a.asked == b.asked ? 0 : a.asked < b.asked ? -1 : 1)
  page.Show(LIST, empty(listed) ? ['Nothing is asked.'] : listed->mapnew((_, approval) =>
    printf('%s  %s  %s', approval.id, sessions.Short(approval.session),
      approval.title->substitute('[[:cntrl:]]\+', ' ', 'g'))))
  MapKeys()
  nnoremap <buffer> <silent> <nowait> <CR> <ScriptCmd>OpenSession()<CR>
enddef

def OpenSession()
  const approval = open->get(Here(), {})
  if !empty(approval)
    close
    sessions.Open(approval.session)
  endif
enddef

export def Complete(): list<string>
  return open->keys()->sort()
enddef
