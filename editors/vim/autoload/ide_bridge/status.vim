vim9script
# What is known about the bridge, its clients and sharing: for the status line, and as a page of its own.
#
# It does not know how any of it is learnt but by asking the bridge.

import autoload 'ide_bridge/approvals.vim'
import autoload 'ide_bridge/command.vim'
import autoload 'ide_bridge/diagnostics.vim'
import autoload 'ide_bridge/diff.vim'
import autoload 'ide_bridge/events.vim'
import autoload 'ide_bridge/link.vim'
import autoload 'ide_bridge/page.vim'
import autoload 'ide_bridge/say.vim'

const PAGE = 'ide-bridge://status'
const POLICIES = {
  full: 'selections and the names of open files',
  path: 'which file and which lines, not their text',
  off: 'nothing unasked',
}

var bridge: dict<any> = {}
var clients: list<dict<any>> = []
var sharing = 'full'

export def Clients(): list<dict<any>>
  return clients
enddef

# -- what happens ---------------------------------------------------------------------------------------------

export def Began(hello: dict<any>)
  bridge = hello
  clients = []
  events.Raise('Started', {port: hello->get('port', 0), pid: hello->get('pid', 0)})
  ClientsChanged(hello->get('clients', []))
  Ask({})
  approvals.Begin()
enddef

export def Ended()
  [bridge, clients, sharing] = [{}, [], 'full']
  events.Raise('Stopped', {})
  redrawstatus!
enddef

export def ClientsChanged(now: list<dict<any>>)
  const before = clients->mapnew((_, client) => client->get('pid', 0))
  const after = now->mapnew((_, client) => client->get('pid', 0))
  clients = now
  const came = now->copy()->filter((_, client) => before->index(client->get('pid', 0)) < 0)
  if !empty(came)
    say.Info($'{came->mapnew((_, client) => client.name)->join(", ")} connected')
    events.Raise('Connected', {clients: now})
  endif
  if !empty(before->copy()->filter((_, pid) => after->index(pid) < 0))
    events.Raise('Disconnected', {clients: now})
  endif
  redrawstatus!
enddef

# -- sharing --------------------------------------------------------------------------------------------------

export def Sharing(policy: string)
  if policy != '' && !POLICIES->has_key(policy)
    say.Error($'sharing is full, path or off, not {policy}')
    return
  endif
  link.WhenReady(() => Ask(policy == '' ? {} : {policy: policy}, (held) => {
    const strict = policy != '' && policy !=# held ? ', as this workspace wants it' : ''
    say.Info($'sharing is {held}: {POLICIES->get(held, held)}{strict}')
  }))
enddef

def Ask(params: dict<any>, Then: func(string) = null_function)
  link.Request('share', params, (answer) => {
    if answer->has_key('error')
      say.Error(answer.error.message)
      return
    endif
    sharing = answer.result
    redrawstatus!
    if Then != null_function
      Then(sharing)
    endif
  })
enddef

# -- the status line ------------------------------------------------------------------------------------------

export def Line(): string
  if empty(bridge)
    return ''
  endif
  const open = diff.Count()
  var parts = [empty(clients) ? 'bridge' : $'bridge:{len(clients)}']
  if open > 0
    parts->add(open == 1 ? '1 diff' : $'{open} diffs')
  endif
  const asked = approvals.Count()
  if asked > 0
    parts->add(asked == 1 ? '1 approval' : $'{asked} approvals')
  endif
  if sharing !=# 'full'
    parts->add($'sharing {sharing}')
  endif
  return parts->join(' ')
enddef

# -- the page -------------------------------------------------------------------------------------------------

export def Show()
  if !link.Runs() || empty(bridge)
    page.Show(PAGE, Local(link.Runs() ? 'starting' : 'not started; :IdeBridgeStart starts it', []))
    return
  endif
  link.Request('status', {}, (answer) => {
    page.Show(PAGE, Local('attached', answer->has_key('error') ? [answer.error.message] : Remote(answer.result)))
  })
enddef

def Local(state: string, remote: list<string>): list<string>
  const program = command.Find()
  return [
    'ide_bridge: ' .. state,
    '',
    $'Vim          {link.Version()}, encoding {&encoding}' .. (has('terminal') ? '' : ', no +terminal'),
    'Command      ' .. (empty(program.argv) ? 'none' : program.argv->join(' ')),
    'Found        ' .. program.found,
    'Diagnostics  ' .. diagnostics.Sources()->join(', '),
  ] + remote + (empty(say.Recent()) ? [] : ['', 'Messages'] + say.Recent()->mapnew((_, line) => '  ' .. line))
enddef

def Remote(told: dict<any>): list<string>
  return [
    $'Workspace    {told.workspaceFolders->join(", ")}',
    $'Bridge       pid {told.pid}, port {told.port}',
    $'Lock         {told.lock}',
    $'Sharing      {told.sharing}: {POLICIES->get(told.sharing, "")}',
  ] + Listed('Clients', told.clients->mapnew((_, client) =>
        $'{client->get("name", "?")} {client->get("version", "")} pid {client->get("pid", "?")}'))
    + Listed('Editors', told.editors->mapnew((_, editor) => editor.name))
    + Listed('Sessions', told->get('sessions', [])->mapnew((_, session) =>
        $'{strpart(session.session, 0, 8)} {session.state} {session.title->substitute('[[:cntrl:]]', ' ', 'g')}'))
    + Listed('Diffs', told.diffs->mapnew((_, one) => fnamemodify(one.path, ':.')))
enddef

def Listed(title: string, lines: list<string>): list<string>
  return lines->empty() ? [printf('%-12s none', title)] : [title] + lines->mapnew((_, line) => '  ' .. line)
enddef
