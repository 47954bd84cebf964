vim9script
# The CLI in a terminal window of Vim, connected already; the window comes and goes, the CLI goes on.
#
# It does not know what is said in it.

import autoload 'ide_bridge/command.vim'
import autoload 'ide_bridge/link.vim'
import autoload 'ide_bridge/say.vim'

var buffer = 0

export def Toggle(mods: string, arguments: list<string>)
  if !has('terminal')
    say.Error('this Vim has no +terminal: start "ide-bridge run claude" in another one')
  elseif !Alive()
    Start(mods, arguments)
  elseif !empty(arguments)
    say.Error('Claude runs already, and cannot get other arguments now')
  elseif bufwinid(buffer) >= 0
    Hide()
  else
    Split(mods, $'sbuffer {buffer}')
  endif
enddef

def Alive(): bool
  return buffer > 0 && bufexists(buffer) && term_getstatus(buffer) =~# 'running'
enddef

def Start(mods: string, arguments: list<string>)
  const program = command.Find()
  if empty(program.argv)
    say.Error(program.found)
    return
  endif
  if !link.Runs()
    link.Start([])
  endif
  Split(mods, 'split')
  const words = program.argv + ['run', 'claude'] + arguments
  buffer = term_start(words, {
    curwin: true, term_name: 'claude', env: program.env, exit_cb: (_, code) => Ended(code),
  })
  setbufvar(buffer, '&bufhidden', 'hide')
  setbufvar(buffer, '&buflisted', false)
enddef

# On the right, unless the user says where (:botright IdeBridgeClaude).
def Split(mods: string, what: string)
  execute mods == '' ? 'botright vertical' : mods what
enddef

# The last window cannot be hidden; it shows something else then.
def Hide()
  for window in win_findbuf(buffer)->filter((_, window) => win_id2win(window) > 0)
    if winnr('$') > 1
      win_execute(window, 'hide')
    else
      win_execute(window, bufexists(bufnr('#')) && bufnr('#') != buffer ? 'buffer #' : 'enew')
    endif
  endfor
enddef

# What went wrong stays to be read.
def Ended(code: number)
  const ended = buffer
  if code == 0
    timer_start(0, (_) => {
      if bufexists(ended)
        execute 'silent bwipeout!' ended
      endif
    })
  endif
enddef
