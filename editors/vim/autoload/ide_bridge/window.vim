vim9script
# The window of a session: a buffer to read, which goes on to be written to when no window shows it.
#
# It does not know sessions, what stands in the buffer, or what its keys do.

import autoload 'ide_bridge/idle.vim'

# The buffer of this name, ready to be written to; a new one, or one that was unloaded, is empty.
export def Buffer(name: string): number
  const buffer = bufadd(name)
  if !bufloaded(buffer)
    setbufvar(buffer, '&buftype', 'nofile')  # or loading it would look for a file of that name
    bufload(buffer)
    setbufvar(buffer, '&bufhidden', 'hide')
    setbufvar(buffer, '&swapfile', false)
    setbufvar(buffer, '&buflisted', false)
    setbufvar(buffer, '&undolevels', -1)
    setbufvar(buffer, '&synmaxcol', 500)
    setbufvar(buffer, '&modifiable', false)
    setbufvar(buffer, 'ale_enabled', 0)
  endif
  return buffer
enddef

# Put what has changed into the buffer. Who reads the end goes on to do so, who reads elsewhere is left there.
export def Write(buffer: number, change: dict<any>)
  const followers = win_findbuf(buffer)->filter((_, window) => line('.', window) == line('$', window))
  setbufvar(buffer, '&modifiable', true)
  if change.dropped > 0
    silent deletebufline(buffer, 1, change.dropped)
  endif
  if !empty(change.lines)
    setbufline(buffer, change.from + 1, change.lines)
  endif
  const height = change.from + len(change.lines)
  if height < getbufinfo(buffer)[0].linecount
    silent deletebufline(buffer, height + 1, '$')
  endif
  setbufvar(buffer, '&modifiable', false)
  setbufvar(buffer, '&modified', false)
  for window in followers
    # To be asked for its first line has a window scroll to its cursor, also one where nobody is.
    win_execute(window, "call cursor(line('$'), 1) | call line('w0')")
  endfor
enddef

# Have it on the screen as soon as the user is not typing; he stays where he is, unless he wants to go there. A
# buffer that is looked at for the first time is prepared, for its keys.
export def Show(buffer: number, focus: bool, Prepare: func())
  idle.Do(() => {
    const here = win_findbuf(buffer)->filter((_, window) => win_id2win(window) > 0)
    if empty(here)
      Open(buffer, focus, Prepare)
    elseif focus
      win_gotoid(here[0])
    endif
  })
enddef

def Open(buffer: number, focus: bool, Prepare: func())
  const back = win_getid()
  execute 'legacy' get(g:, 'ide_bridge_session_window', 'botright vertical') 'split'
  execute 'buffer' buffer
  if &filetype ==# ''
    setlocal filetype=markdown
    Prepare()  # after the file type, which may have keys of its own
  endif
  setlocal nonumber norelativenumber nolist nospell wrap linebreak breakindent signcolumn=no nocursorline
  setlocal statusline=%<%f\ %{get(b:,'ide_bridge_state','')}%=%{get(b:,'ide_bridge_title','')}\ %P
  cursor(line('$'), 1)
  if !focus
    win_gotoid(back)
  endif
enddef

# Close the windows of a buffer in this tab; the last one cannot be closed, and shows something else then.
export def Hide(buffer: number)
  for window in win_findbuf(buffer)->filter((_, window) => win_id2win(window) > 0)
    if winnr('$') > 1
      win_execute(window, 'close')
    else
      win_execute(window, bufexists(bufnr('#')) && bufnr('#') != buffer ? 'buffer #' : 'enew')
    endif
  endfor
enddef
