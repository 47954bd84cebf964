vim9script
# The link: a job `ide-bridge attach`, and what is asked and told over it in both directions.
#
# It does not know sockets, ports or clients' wishes; what each request means is in the other files.

import autoload 'ide_bridge/approvals.vim'
import autoload 'ide_bridge/command.vim'
import autoload 'ide_bridge/diagnostics.vim'
import autoload 'ide_bridge/diff.vim'
import autoload 'ide_bridge/events.vim'
import autoload 'ide_bridge/files.vim'
import autoload 'ide_bridge/frames.vim'
import autoload 'ide_bridge/say.vim'
import autoload 'ide_bridge/selection.vim'
import autoload 'ide_bridge/sessions.vim'
import autoload 'ide_bridge/status.vim'

const LINK = 1
const FEATURES = ['selection', 'diagnostics', 'diff', 'focus', 'dirty']
export const METHOD_NOT_FOUND = -32601
const INTERNAL_ERROR = -32603
const LAST_WORDS = 300  # ms for what is decided while Vim is quitting
const LAST_LINE = 20  # ms for what the job has written when it ends

var job: job = null_job
var ready = false
var next_id = 0
var pending: dict<func(dict<any>)> = {}
var waiting: list<func()> = []
var last_line = ''
var generation = 0  # of the job; what an earlier one still says is of no interest

# -- starting and stopping ------------------------------------------------------------------------------------

export def Start(folders: list<string>)
  if Runs()
    say.Info('runs already; :IdeBridgeStatus tells more')
    return
  endif
  const program = command.Find()
  if &encoding !=# 'utf-8'
    say.Error('needs ":set encoding=utf-8" in your vimrc')
  elseif empty(program.argv)
    say.Error(program.found)
  else
    const named = folders->mapnew((_, folder) => fnamemodify(expand(folder), ':p'))
    Launch(program, empty(named) ? [getcwd()] : named)
  endif
enddef

def Launch(program: dict<any>, folders: list<string>)
  frames.Reset()
  [ready, last_line, pending] = [false, '', {}]
  generation += 1
  const mine = generation
  job = job_start(program.argv + ['attach'] + folders, {
    mode: 'raw', err_mode: 'nl', noblock: true, env: program.env,
    out_cb: (_, chunk) => IfCurrent(mine, () => Received(chunk)),
    err_cb: (_, line) => IfCurrent(mine, () => Logged(line)),
    # Its last words may still be on their way.
    exit_cb: (_, code) => timer_start(LAST_LINE, (_) => IfCurrent(mine, () => Ended(code))),
  })
  if job_status(job) ==# 'fail'
    job = null_job
    say.Error($'{program.argv[0]} cannot be started; :IdeBridgeStatus tells where it was looked for')
    return
  endif
  Request('hello', {
    link: LINK, editor: 'Vim', version: Version(), features: FEATURES,
    folders: folders->mapnew((_, folder) => resolve(folder)->substitute('.\zs/$', '', '')), pid: getpid(),
  }, Welcomed)
enddef

# Do something, if no other job has taken the place of this one.
def IfCurrent(mine: number, Action: func())
  if mine == generation
    Action()
  endif
enddef

export def Version(): string
  return $'{v:versionlong / 1000000}.{v:versionlong / 10000 % 100}.{v:versionlong % 10000}'
enddef

def Welcomed(answer: dict<any>)
  if answer->has_key('error')
    say.Error(answer.error.message)
    Stop()
    return
  endif
  ready = true
  events.Begin()
  status.Began(answer.result)
  const actions = waiting
  waiting = []
  for Action in actions
    Action()
  endfor
enddef

# Detach from the bridge; it goes on, and open diffs are offered to the next editor.
export def Stop()
  if !Runs()
    say.Info('does not run')
    return
  endif
  const ending = job
  Gone()
  ch_close_in(ending)
  # Other jobs of Vim hold a copy of the pipe, so that closing it may not be noticed.
  timer_start(LAST_WORDS, (_) => job_stop(ending))
enddef

# Vim quits: open diffs are rejected, and that must have left before the job is ended.
export def Leave()
  if ready && diff.Count() > 0
    diff.RejectAll()
    var heard = false
    Request('status', {}, (_) => {
      heard = true
    })
    const began = reltime()
    while !heard && reltimefloat(reltime(began)) * 1000 < LAST_WORDS
      sleep 5m
    endwhile
  endif
enddef

export def Runs(): bool
  return job != null_job && job_status(job) ==# 'run'
enddef

export def IsReady(): bool
  return ready
enddef

# Does something when the bridge has answered, which starts if it has to.
export def WhenReady(Action: func())
  if ready
    Action()
    return
  endif
  if !Runs()
    Start([])
  endif
  if Runs()
    waiting->add(Action)
  endif
enddef

def Logged(line: string)
  if line =~# '\S'
    last_line = line
  endif
enddef

# The job has ended; a bridge that was stopped on purpose ends it with 0, and crashes are repaired behind our back.
def Ended(code: number)
  Gone()
  if code == 0
    say.Info('the bridge was stopped')
  else
    say.Error(last_line == '' ? $'ide-bridge attach ended with {code}' : last_line)
  endif
enddef

def Gone()
  const was_ready = ready
  generation += 1
  [job, ready, pending, waiting] = [null_job, false, {}, []]
  if was_ready
    events.End()
    diff.CloseAll()
    selection.Reset()
    sessions.Detached()
    approvals.Reset()
    status.Ended()
  endif
enddef

# -- telling and asking ---------------------------------------------------------------------------------------

export def Notify(method: string, params: dict<any>)
  if ready
    Send({jsonrpc: '2.0', method: method, params: params})
  endif
enddef

# `Then` gets the whole answer, with `result` or `error`; and `has_nul`, whether it has lost characters on the way.
export def Request(method: string, params: dict<any>, Then: func(dict<any>))
  next_id += 1
  pending[next_id] = Then
  Send({jsonrpc: '2.0', id: next_id, method: method, params: params})
enddef

def Send(message: dict<any>)
  if Runs() && ch_status(job) ==# 'open'
    ch_sendraw(job, frames.Frame(message))
  endif
enddef

# -- being told and asked -------------------------------------------------------------------------------------

def Received(chunk: string)
  var bodies: list<string>
  try
    bodies = frames.Feed(chunk)
  catch /^ide_bridge:/
    say.Error(say.Sentence(v:exception) .. '; is g:ide_bridge_command right?')
    Stop()
    return
  endtry
  for body in bodies
    Handle(body)
  endfor
enddef

def Handle(body: string)
  var message: dict<any> = json_decode(body)
  if !message->has_key('method')
    const Then = pending->get(message.id, null_function)
    if Then != null_function
      pending->remove(message.id)
      Then(extend(message, {has_nul: frames.HasNul(body)}))
    endif
  elseif !message->has_key('id')
    Told(message.method, message->get('params', {}), frames.HasNul(body))
  else
    Send(extend({jsonrpc: '2.0', id: message.id}, Answer(message, frames.HasNul(body))))
  endif
enddef

def Answer(message: dict<any>, has_nul: bool): dict<any>
  const Verb = REQUESTS->get(message.method, null_function)
  if Verb == null_function
    return {error: {code: METHOD_NOT_FOUND, message: $'Vim does not know {message.method}'}}
  elseif has_nul
    return {error: {code: INTERNAL_ERROR, message: 'the text has NUL characters, which Vim cannot be told'}}
  endif
  try
    return {result: Verb(message->get('params', {}))}
  catch
    return {error: {code: INTERNAL_ERROR, message: say.Sentence(v:exception)}}
  endtry
enddef

def OpenFile(params: dict<any>): dict<any>
  files.Visit(params.path, Place(params, 'start'), Place(params, 'end'), params->get('focus', true))
  return {}
enddef

def ShowDiff(params: dict<any>): dict<any>
  diff.Show(params.diff, params.path, params.contents)
  return {}
enddef

def CloseDiff(params: dict<any>): dict<any>
  diff.Close(params.diff)
  return {}
enddef

def Place(params: dict<any>, name: string): dict<any>
  const place = params->get(name, null)
  return place == null ? {} : place
enddef

def Told(method: string, params: dict<any>, has_nul: bool)
  try
    if method ==# 'fileChanged'
      files.Reload(params.path)
    elseif method ==# 'clientsChanged'
      status.ClientsChanged(params.clients)
    elseif method ==# 'message'
      {error: say.Error, warning: say.Warning}->get(params.level, say.Info)(params.text)
    elseif method ==# 'sessionEvent'
      sessions.Happened(params)
    elseif method ==# 'approvalAsked'
      approvals.Asked(extend(params, {has_nul: has_nul}))
    elseif method ==# 'approvalClosed'
      approvals.Closed(params)
    endif
  catch
    say.Error(say.Sentence(v:exception))
  endtry
enddef

# After the functions it names: they are looked up here.
const REQUESTS: dict<func(dict<any>): any> = {
  openFiles: (_) => files.Open(),
  currentFile: (_) => files.Current(),
  selection: (_) => selection.Current(),
  diagnostics: (params) => diagnostics.Of(params->get('path', '')),
  openFile: OpenFile,
  readBuffer: (params) => files.Read(params.path),
  saveFile: (params) => ({saved: files.Save(params.path)}),
  closeFile: (params) => ({closed: files.Close(params.path)}),
  showDiff: ShowDiff,
  closeDiff: CloseDiff,
}
