vim9script
# Waiting until the user is not in the middle of typing.
#
# A window that opens under somebody's hands gets the keys that were meant for another one. What moves the user
# is done at once in Normal mode and in a terminal, else as soon as he is back there.
#
# It does not know what is done.

import autoload 'ide_bridge/say.vim'

var waiting: list<func()> = []

export def Do(Action: func())
  if empty(waiting) && Calm()
    Action()
    return
  endif
  waiting->add(Action)
  augroup ide_bridge_idle
    autocmd!
    autocmd SafeState,ModeChanged,CmdwinLeave,WinEnter * Soon()
  augroup END
enddef

def Calm(): bool
  return mode(1) =~# '^\%(n\|nt\|t\)$' && getcmdwintype() == '' && win_gettype() !=# 'popup'
enddef

# Not inside the autocommand: the cmdline window, for one, is still there then.
def Soon()
  if Calm()
    autocmd! ide_bridge_idle
    timer_start(0, (_) => Run())
  endif
enddef

def Run()
  const ready = waiting
  waiting = []
  for Action in ready
    try
      Action()
    catch
      say.Error(say.Sentence(v:exception))
    endtry
  endfor
enddef
