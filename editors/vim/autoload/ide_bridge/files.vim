vim9script
# The files that are open: telling, opening, saving, closing and loading them again.
#
# It does not know selections or diffs, and never asks the user anything.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/idle.vim'
import autoload 'ide_bridge/say.vim'
import autoload 'ide_bridge/selection.vim'

# The files in the buffer list, the most recently used first.
export def Open(): list<dict<any>>
  const active = selection.Buffer()
  return getbufinfo({buflisted: 1})
    ->sort((a, b) => b.bufnr == active ? 1 : a.bufnr == active ? -1 : b.lastused - a.lastused)
    ->filter((_, info) => buffers.PathOf(info.bufnr) != '')
    ->map((_, info) => Described(info, active))
enddef

# The file the user looks at; null when there is none.
export def Current(): any
  const buffer = selection.Buffer()
  return buffer == 0 ? null : Described(getbufinfo(buffer)[0], buffer)
enddef

def Described(info: dict<any>, active: number): dict<any>
  return {
    path: buffers.PathOf(info.bufnr),
    active: info.bufnr == active,
    dirty: info.changed ? true : false,
    language: getbufvar(info.bufnr, '&filetype'),
    lines: info.loaded ? info.linecount : 0,
  }
enddef

export def Read(path: string): any
  const buffer = buffers.BufferOf(path)
  if buffer == 0 || !bufloaded(buffer)
    return null
  endif
  return {text: buffers.Text(buffer), dirty: getbufvar(buffer, '&modified') ? true : false}
enddef

# -- opening --------------------------------------------------------------------------------------------------

# Opens a file, in view when `focus`; `start` and `end` are empty or positions.
export def Visit(path: string, start: dict<any>, end: dict<any>, focus: bool)
  if buffers.BufferOf(path) == 0 && !filereadable(path)
    throw $'ide_bridge: there is no file {path}'
  endif
  const known = buffers.BufferOf(path)
  const buffer = known == 0 ? bufadd(path) : known
  setbufvar(buffer, '&buflisted', true)
  if focus
    idle.Do(() => Look(buffer, start, end))
  else
    silent! bufload(buffer)  # that another Vim has it open is an error here (E325), which loads it all the same
  endif
enddef

# Another Vim may have the file open; then it is opened read-only, as "(O)pen Read-Only" would.
def WithoutQuestions(Action: func())
  autocmd_add([{
    group: 'ide_bridge_swap', event: 'SwapExists', pattern: '*', replace: true, cmd: "v:swapchoice = 'o'",
  }])
  try
    Action()
  finally
    autocmd_delete([{group: 'ide_bridge_swap', event: 'SwapExists'}])
  endtry
enddef

def Look(buffer: number, start: dict<any>, end: dict<any>)
  normal! m'
  const windows = win_findbuf(buffer)
  const here = windows->copy()->filter((_, window) => win_id2win(window) > 0)
  if windows->index(win_getid()) < 0
    if !empty(windows)
      win_gotoid(get(here, 0, windows[0]))
    else
      WithoutQuestions(() => MakeRoom(buffer))
    endif
  endif
  if !empty(start)
    Select(start, empty(end) ? start : end)
  endif
enddef

# A window for files: this one, the last one, any in this tab, else a new one. Never one of a diff of ours.
def MakeRoom(buffer: number)
  const numbers = [winnr(), winnr('#')] + range(1, winnr('$'))
  const candidates = numbers->mapnew((_, number) => win_getid(number))
  const rooms = candidates->copy()->filter((_, window) => window != 0 && Room(window))
  if empty(rooms)
    if InDiff()
      execute 'tab sbuffer' buffer
    else
      execute 'aboveleft sbuffer' buffer
    endif
  else
    win_gotoid(rooms[0])
    execute 'buffer' buffer
  endif
enddef

def Room(window: number): bool
  const buffer = winbufnr(window)
  const free = !getbufvar(buffer, '&modified') || &hidden || len(win_findbuf(buffer)) > 1
  return free && win_gettype(window) == '' && getbufvar(buffer, '&buftype') == ''
enddef

def InDiff(): bool
  const ours = '^ide-bridge://\%(current\|proposed\)/'
  return !empty(tabpagebuflist()->filter((_, buffer) => bufname(buffer) =~# ours))
enddef

def Select(start: dict<any>, end: dict<any>)
  Go(start)
  normal! zv
  if end != start
    normal! v
    Go(end)
    if &selection !=# 'exclusive'
      if col('.') > 1
        normal! h
      else
        normal! k$
      endif
    endif
  endif
enddef

def Go(place: dict<any>)
  const number = min([place.line + 1, line('$')])
  cursor(number, buffers.Bytes(getline(number), place.column) + 1)
enddef

# -- saving and closing ---------------------------------------------------------------------------------------

export def Save(path: string): bool
  const buffer = buffers.BufferOf(path)
  if buffer == 0 || !bufloaded(buffer)
    return false
  endif
  if getbufvar(buffer, '&modified')
    CheckTime(buffer)
    if conflicts->has_key(buffer)
      throw $'ide_bridge: {path} has changed on disk since Vim read it; the user has to decide'
    endif
    In(buffer, 'silent write')
  endif
  return !getbufvar(buffer, '&modified')
enddef

export def Close(path: string): bool
  const buffer = buffers.BufferOf(path)
  if buffer == 0 || !getbufvar(buffer, '&buflisted')
    return false
  endif
  if getbufvar(buffer, '&modified')
    throw $'ide_bridge: {path} has unsaved changes'
  endif
  execute 'silent bdelete' buffer
  return true
enddef

# Run a command where the buffer is the current one, without moving anybody; gives what it prints.
def In(buffer: number, command: string): string
  const windows = win_findbuf(buffer)
  if !empty(windows)
    return win_execute(windows[0], command)
  endif
  const popup = popup_create(buffer, {hidden: true})
  var printed = ''
  try
    printed = win_execute(popup, command)
  finally
    popup_close(popup)
  endtry
  return printed
enddef

# -- loading again --------------------------------------------------------------------------------------------

# A client has written the file: show what is in it now, but never instead of what the user has not saved.
export def Reload(path: string)
  const buffer = buffers.BufferOf(path)
  if buffer == 0 || !bufloaded(buffer)
    return
  endif
  if getbufvar(buffer, '&modified')
    const known = conflicts->get(buffer, 0)
    CheckTime(buffer)
    if conflicts->get(buffer, 0) > known
      const name = fnamemodify(path, ':.')
      say.Warning($'{name} changed on disk under your unsaved changes: :w writes yours, :e! takes the new text')
    endif
  else
    Refresh(buffer, path)
  endif
enddef

# Vim asks (W13) about a file that was not there when it was opened, and overlooks one that is as long and as old.
def Refresh(buffer: number, path: string)
  if getbufline(buffer, 1, 2) !=# ['']
    const tick = getbufvar(buffer, 'changedtick')
    ReadAgain(buffer)
    if getbufvar(buffer, 'changedtick') != tick || !filereadable(path) || OnDisk(buffer, path)
      return
    endif
  endif
  WithoutQuestions(() => {
    In(buffer, 'silent keepalt edit')
  })
enddef

def OnDisk(buffer: number, path: string): bool
  const end = getbufvar(buffer, '&fileformat') ==# 'dos' ? "\r" : ''
  return readfile(path) ==# getbufline(buffer, 1, '$')->map((_, line) => line .. end)
enddef

# As 'autoread' does it: undo, cursor, marks and folds stay. The user's own setting is left as it is.
def ReadAgain(buffer: number)
  const before = In(buffer, 'setlocal autoread?')->trim()
  setbufvar(buffer, '&autoread', true)
  try
    CheckTime(buffer)
  finally
    In(buffer, 'setlocal ' .. (before =~# '^--' ? 'autoread<' : before))
  endtry
enddef

# Has Vim compare a buffer with its file; where it would ask the user, nothing is done.
def CheckTime(buffer: number)
  autocmd_add([{
    group: 'ide_bridge_checktime', event: 'FileChangedShell', bufnr: buffer, replace: true,
    cmd: $"v:fcs_choice = '' | Noticed({buffer})",
  }])
  try
    execute 'silent checktime' buffer
  finally
    autocmd_delete([{group: 'ide_bridge_checktime', event: 'FileChangedShell', bufnr: buffer}])
  endtry
enddef

# -- files that changed on disk under unsaved changes; writing one of them would make Vim ask -----------------

var conflicts: dict<number> = {}  # how often it was noticed

# Vim has noticed that a file changed, and has loaded it again or not.
export def Noticed(buffer: number)
  if getbufvar(buffer, '&modified')
    conflicts[buffer] = conflicts->get(buffer, 0) + 1
  endif
enddef

# Buffer and file are the same again.
export def Agreed(buffer: number)
  if conflicts->has_key(buffer)
    conflicts->remove(buffer)
  endif
enddef
