vim9script
# What happens in Vim, told to the bridge; and what happens here, told to the user's autocommands.
#
# It does not know what becomes of it.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/diagnostics.vim'
import autoload 'ide_bridge/files.vim'
import autoload 'ide_bridge/link.vim'
import autoload 'ide_bridge/selection.vim'

var opened: dict<string> = {}
var focused = ''
var appeared: dict<bool> = {}
var timer = 0

# Begin to listen.
export def Begin()
  for info in getbufinfo({buflisted: 1})
    const path = buffers.PathOf(info.bufnr)
    if path != ''
      opened[info.bufnr] = path
    endif
  endfor
  augroup ide_bridge
    autocmd!
    autocmd CursorMoved,CursorMovedI * selection.Report()
    # Nothing to tell when only the command line is entered, as from Visual mode.
    autocmd ModeChanged *:[vV\x16sS\x13ni]* selection.ReportSoon()
    autocmd BufEnter,WinEnter * Soon()
    autocmd FocusGained * Focused()
    autocmd BufReadPost * files.Agreed(str2nr(expand('<abuf>')))
    autocmd BufReadPost,BufNewFile,BufFilePost,BufAdd * Appeared(str2nr(expand('<abuf>')))
    autocmd BufDelete,BufWipeout * Closed(str2nr(expand('<abuf>')))
    autocmd BufWritePost * Saved(str2nr(expand('<abuf>')))
    autocmd FileChangedShellPost * files.Noticed(str2nr(expand('<abuf>')))
    autocmd DirChanged * buffers.ForgetPaths()
    autocmd QuickFixCmdPost * diagnostics.ReportSoon()
    autocmd User ALELintPost,CocDiagnosticChange,lsp_diagnostics_updated,LspDiagsUpdated diagnostics.ReportSoon()
    autocmd VimLeavePre * link.Leave()
  augroup END
  Entered()
enddef

# Listen no longer.
export def End()
  autocmd! ide_bridge
  timer_stop(timer)
  [opened, appeared, focused, timer] = [{}, {}, '', 0]
enddef

# Run the user's autocommands `User IdeBridge…`, with `g:ide_bridge_event` as what they may look at.
export def Raise(name: string, details: dict<any>)
  if exists('#User#IdeBridge' .. name)
    g:ide_bridge_event = details
    execute 'doautocmd <nomodeline> User IdeBridge' .. name
    unlet g:ide_bridge_event
  endif
enddef

# What a buffer is, a file or a terminal, is known only once the command is over that made it; and windows that a
# command only passes through are not where the user goes.
def Appeared(buffer: number)
  buffers.ForgetPaths()
  appeared[buffer] = true
  Soon()
enddef

def Soon()
  if timer == 0
    timer = timer_start(0, (_) => LookAround())
  endif
enddef

def LookAround()
  timer = 0
  const numbers = keys(appeared)
  appeared = {}
  for number in numbers
    if bufloaded(str2nr(number))
      Opened(str2nr(number))
    endif
  endfor
  Entered()
enddef

def Entered()
  const path = buffers.PathOf(bufnr())
  if path != '' && path !=# focused
    Focused()
  endif
  selection.Report()
enddef

def Focused()
  const path = buffers.PathOf(bufnr())
  if path != ''
    focused = path
    link.Notify('fileFocused', {path: path})
  endif
enddef

def Opened(buffer: number)
  const path = buffers.PathOf(buffer)
  const before = opened->get(buffer, '')
  if path !=# before
    if before != ''
      Closed(buffer)
    endif
    if path != '' && getbufvar(buffer, '&buflisted')
      opened[buffer] = path
      link.Notify('fileOpened', {path: path})
    endif
  endif
enddef

def Closed(buffer: number)
  if opened->has_key(buffer)
    const path = opened->remove(buffer)
    if path ==# focused
      focused = ''
    endif
    selection.Forget(path)
    link.Notify('fileClosed', {path: path})
  endif
enddef

def Saved(buffer: number)
  files.Agreed(buffer)
  Opened(buffer)
  const path = buffers.PathOf(buffer)
  if path != ''
    link.Notify('fileSaved', {path: path})
  endif
enddef
