vim9script
# The sessions this Vim takes part in: what happens in each of them, in a window of its own, and what the user
# wants of them.
#
# Events may come by the thousand: they are kept, and shown together a few times a second.
#
# It does not know how an event looks, or how permission is given.

import autoload 'ide_bridge/approvals.vim'
import autoload 'ide_bridge/ask.vim'
import autoload 'ide_bridge/conversation.vim'
import autoload 'ide_bridge/link.vim'
import autoload 'ide_bridge/page.vim'
import autoload 'ide_bridge/say.vim'
import autoload 'ide_bridge/window.vim'

const TOGETHER = 50  # ms in which events are collected
const PULSE = 3000  # ms after which a session that should live is looked after
const SHORT = 8
const LIST = 'ide-bridge://sessions'
const STATES = {
  starting: 'starting…',
  working: 'working…',
  waiting: 'waiting for you',
  idle: 'idle',
  lost: 'lost; <CR> asks again',
  stopped: 'stopped; <CR> asks again',
  detached: 'not attached; <CR> asks again',
}
const ALIVE = ['starting', 'working', 'waiting', 'idle']
const HELP = [
  '<CR> i   ask the next question',
  '<C-c>    interrupt Claude',
  'q        close the window; the session goes on',
  '',
  'For the question under the cursor, or the only one:',
  'a        allow it once; answer it',
  'A        allow it and the like for the session',
  'd        deny it, and say why',
  'e        change what the tool is given; :w allows that',
  '=        show the change of a file',
]

# By their ids: session, buffer, state, title, number (of the last event), and whether the whole story
# has to be shown again.
var known: dict<dict<any>> = {}
var listed: list<dict<any>> = []
var used = ''
var queue: list<dict<any>> = []
var flushing = 0
var pulse = 0

export def Short(session: string): string
  return strpart(session, 0, SHORT)
enddef

# Ask the bridge for something that has to do with sessions.
export def Call(method: string, params: dict<any>, Then: func(any) = null_function, Else: func() = null_function)
  link.WhenReady(() => {
    link.Request(method, params, (answer) => Answered(answer, Then, Else))
  })
enddef

def Answered(answer: dict<any>, Then: func(any), Else: func())
  if answer->has_key('error')
    const has_none = answer.error.code == link.METHOD_NOT_FOUND
    say.Error(has_none ? 'This bridge has no sessions; update ide-bridge.' : answer.error.message)
    if Else != null_function
      Else()
    endif
  elseif Then != null_function
    Then(answer.result)
  endif
enddef

# -- what happens ---------------------------------------------------------------------------------------------

# Something in a session: `session`, `number`, `event`.
export def Happened(params: dict<any>)
  queue->add(params)
  if flushing == 0
    flushing = timer_start(TOGETHER, (_) => Flush())
  endif
enddef

def Flush()
  const news = queue
  [queue, flushing] = [[], 0]
  var touched: dict<dict<any>> = {}
  for one in news
    const session = Known(one.session)
    Take(session, one.number, one.event)
    touched[one.session] = session
  endfor
  for session in values(touched)
    Write(session)
  endfor
enddef

# Numbers that begin anew are told of a session from its beginning.
def Take(session: dict<any>, number: number, event: dict<any>)
  if number == session.number
    return
  elseif number < session.number
    conversation.Begin(session.session)
    session.whole = true
  endif
  session.number = number
  if event.kind ==# 'state'
    Enter(session, event.state)
  else
    conversation.Add(session.session, event)
  endif
enddef

def Known(id: string): dict<any>
  if !known->has_key(id)
    conversation.Begin(id)
    known[id] = {session: id, buffer: 0, state: 'starting', title: '', number: 0, whole: true}
    Look()
  endif
  return known[id]
enddef

def Enter(session: dict<any>, state: string)
  const before: string = session.state
  session.state = state
  Label(session)
  if state ==# 'lost' && before !=# 'lost'
    session.number = 0  # a bridge that resumes it counts from the beginning
    conversation.Withdraw(session.session)
    Remark(session, 'The session is lost: its bridge is gone. <CR> asks again and resumes it.')
  elseif Lives(session)
    Look()
  endif
enddef

def Lives(session: dict<any>): bool
  return ALIVE->index(session.state) >= 0
enddef

def Remark(session: dict<any>, text: string)
  conversation.Add(session.session, {kind: 'notice', text: text})
enddef

# -- the window -----------------------------------------------------------------------------------------------

def Write(session: dict<any>)
  if session.buffer == 0 || !bufloaded(session.buffer)
    session.buffer = window.Buffer($'ide-bridge://session/{Short(session.session)}')
    session.whole = true
  endif
  if session.whole
    conversation.Again(session.session)
    session.whole = false
  endif
  window.Write(session.buffer, conversation.Take(session.session))
  Label(session)
enddef

def Label(session: dict<any>)
  if session.buffer > 0
    setbufvar(session.buffer, 'ide_bridge_state', STATES->get(session.state, session.state))
    setbufvar(session.buffer, 'ide_bridge_title', session.title)
    redrawstatus!
  endif
enddef

def Show(session: dict<any>, focus: bool)
  Write(session)
  window.Show(session.buffer, focus, () => Prepare(session.session))
enddef

def Prepare(session: string)
  b:ide_bridge_session = session
  nnoremap <buffer> <silent> <nowait> <CR> <ScriptCmd>ask.Next()<CR>
  nnoremap <buffer> <silent> <nowait> i <ScriptCmd>ask.Next()<CR>
  nnoremap <buffer> <silent> <nowait> <C-C> <ScriptCmd>Interrupt('')<CR>
  nnoremap <buffer> <silent> <nowait> q <ScriptCmd>window.Hide(bufnr())<CR>
  nnoremap <buffer> <silent> <nowait> ? <ScriptCmd>page.Show('ide-bridge://keys', HELP)<CR>
  approvals.MapKeys()
enddef

# The session whose window this is; empty when it is none.
export def Here(): string
  return get(b:, 'ide_bridge_session', '')
enddef

# What stands under the cursor in the window of a session: the id of a question for permission, or nothing.
export def ApprovalHere(): string
  const key = conversation.KeyAt(Here(), line('.') - 1)
  return key =~# '^approval:' ? key->substitute('^approval:', '', '') : ''
enddef

# -- what the user wants --------------------------------------------------------------------------------------

# The user has asked something in a session.
export def Used(id: string, title: string)
  used = id
  const session = Known(id)
  session.title = title
  if !Lives(session)
    Enter(session, 'starting')
  endif
  Show(session, Here() ==# id)
enddef

# Show a session, and go there; one that is not watched yet is told from the beginning.
export def Open(id: string)
  const session = Known(id)
  used = id
  if session.number > 0 && Lives(session)
    Show(session, true)
    return
  endif
  Call('watchSession', {session: id}, (answer) => {
    session.title = answer.session->get('title', '')
    Enter(session, answer.session.state)
    Show(session, true)
  })
enddef

# :IdeBridgeSessions
export def List()
  Call('sessions', {}, (sessions) => {
    listed = sessions->copy()->sort((a, b) => a.changed == b.changed ? 0 : a.changed < b.changed ? 1 : -1)
    page.Show(LIST, empty(listed) ? ['There are no sessions; :IdeBridgeAsk starts one.'] : Listed())
    nnoremap <buffer> <silent> <nowait> <CR> <ScriptCmd>OpenListed(line('.') - 1)<CR>
  })
enddef

def Listed(): list<string>
  return listed->mapnew((_, session) => printf('%s  %-8s  %s  %s', Short(session.session), session.state,
    strftime('%d %b %H:%M', float2nr(session.changed)), session.title->substitute('[[:cntrl:]]\+', ' ', 'g')))
enddef

def OpenListed(index: number)
  if index < len(listed)
    close
    Open(listed[index].session)
  endif
enddef

export def Interrupt(named: string)
  const session = Meant(named)
  if session != ''
    Call('interrupt', {session: session})
  endif
enddef

export def StopOne(named: string)
  const session = Meant(named)
  if session != ''
    Call('stopSession', {session: session}, (_) => {
      say.Info($'session {Short(session)} is stopped')
    })
  endif
enddef

# The session named, else that of this window, else the one used last; empty, and said so, when there is none.
def Meant(named: string): string
  const session = named != '' ? named : Here() != '' ? Here() : used
  if session == ''
    say.Error('which session? :IdeBridgeSessions lists them')
  endif
  return session
enddef

export def Complete(): list<string>
  return known->keys()->map((_, session) => Short(session))
enddef

# -- looking after them ---------------------------------------------------------------------------------------

# A bridge that was killed tells nobody, and the one in its place is not noticed here: so it is asked now and then,
# for as long as something should go on.
export def Look()
  if pulse == 0
    pulse = timer_start(PULSE, (_) => LookAfter())
  endif
enddef

def LookAfter()
  pulse = 0
  const living = known->values()->filter((_, session) => Lives(session))
  if !link.IsReady() || (empty(living) && approvals.Count() == 0)
    return
  endif
  link.Request('sessions', {}, (answer) => {
    if answer->has_key('result')
      Compare(answer.result)
    endif
  })
  if approvals.Count() > 0
    approvals.Look()
  endif
  Look()
enddef

def Compare(told: list<dict<any>>)
  Flush()
  var states: dict<string> = {}
  for session in told
    states[session.session] = session.state
  endfor
  for session in known->values()->filter((_, session) => Lives(session))
    const state = states->get(session.session, 'lost')
    if state !=# session.state
      Enter(session, state)
      Write(session)
    endif
  endfor
enddef

# Vim is no longer attached: what happens now is not told.
export def Detached()
  Flush()
  for session in known->values()->filter((_, session) => Lives(session))
    Enter(session, 'detached')
    Write(session)
  endfor
enddef
