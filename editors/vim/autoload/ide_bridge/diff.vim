vim9script
# Diffs: a change that a client proposes, in a tab of its own, until the user decides.
#
# On the left is the file as it is, which cannot be changed there; on the right the proposed text. Writing the
# right side keeps it as it is then, closing it rejects it. The file is never written here: the client does that.
#
# It does not know clients.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/events.vim'
import autoload 'ide_bridge/idle.vim'
import autoload 'ide_bridge/link.vim'
import autoload 'ide_bridge/say.vim'

# By number: path, contents (as proposed), left and right (buffers), tick (of the right one when shown), before
# (the window the user came from), unsaved. One that waits to be shown has no buffers yet.
var diffs: dict<dict<any>> = {}

export def Count(): number
  return len(diffs)
enddef

export def Paths(): list<string>
  return diffs->values()->mapnew((_, diff) => diff.path)
enddef

# Show a diff as soon as the user is not typing; one that is shown already is shown anew.
export def Show(id: number, path: string, contents: string)
  Close(id)
  var diff: dict<any> = {id: id, path: path, contents: contents, left: 0, right: 0}
  diffs[id] = diff
  idle.Do(() => {
    if diffs->get(id, {}) is diff
      Open(diff)
    endif
  })
  if diff.right == 0
    say.Info($'a change of {Name(path)} is proposed; leave this mode to see it')
  endif
enddef

# Close a diff without a decision; one that is gone already is fine.
export def Close(id: number)
  if diffs->has_key(id)
    const diff = diffs->remove(id)
    idle.Do(() => Wipe(diff))
  endif
enddef

export def CloseAll()
  for id in keys(diffs)
    Close(str2nr(id))
  endfor
enddef

export def RejectAll()
  for id in keys(diffs)
    Decide(str2nr(id), 'rejected')
  endfor
enddef

# -- the commands ---------------------------------------------------------------------------------------------

export def Accept(force: bool)
  const id = Meant()
  if id > 0 && Keep(id, force)
    Wipe(diffs->remove(id))
  endif
enddef

export def Reject()
  const id = Meant()
  if id > 0
    Decide(id, 'rejected')
    Wipe(diffs->remove(id))
  endif
enddef

# The diff of this tab, or the only one; 0, and said so, when it is not clear.
def Meant(): number
  const here = tabpagebuflist()
  for diff in values(diffs)
    if here->index(diff.right) >= 0 || here->index(diff.left) >= 0
      return diff.id
    endif
  endfor
  if len(diffs) == 1
    return diffs->values()[0].id
  endif
  say.Error(empty(diffs) ? 'there is no diff to decide' : 'several diffs are open: go to the tab of the one')
  return 0
enddef

# -- deciding -------------------------------------------------------------------------------------------------

# Whether it was kept: what the user has not saved in the file's own buffer is lost only if he says so.
def Keep(id: number, force: bool): bool
  const diff = diffs[id]
  const own = buffers.BufferOf(diff.path)
  if !force && own > 0 && getbufvar(own, '&modified') && !Contains(diff, own)
    say.Error($':w! keeps it, "do" takes the left side over, which has unsaved changes: {Name(diff.path)}')
    return false
  endif
  Decide(id, 'kept')
  return true
enddef

# Whether the proposed text is what the buffer has: then nothing can be lost.
def Contains(diff: dict<any>, own: number): bool
  return diff.right > 0 && getbufline(own, 1, '$') ==# getbufline(diff.right, 1, '$')
enddef

def Decide(id: number, decision: string)
  const diff = diffs[id]
  const contents = decision ==# 'kept' ? {contents: Final(diff)} : {}
  link.Notify('diffDecided', extend({diff: id, decision: decision}, contents))
  events.Raise('DiffDecided', {diff: id, path: diff.path, decision: decision})
enddef

# The text as it is on the right: as it was proposed, to the byte, unless the user has changed it.
def Final(diff: dict<any>): string
  if diff.right == 0 || !bufloaded(diff.right)
    return diff.contents
  endif
  const lines = getbufline(diff.right, 1, '$')
  const same = lines ==# Lines(diff.contents) && getbufvar(diff.right, '&endofline') == EndsLine(diff.contents)
    && getbufvar(diff.right, '&fileformat') ==# Format(diff.contents)
  return same ? diff.contents : buffers.Text(diff.right)
enddef

# -- a text and its line ends ---------------------------------------------------------------------------------

def Format(contents: string): string
  return contents =~# '\r\n' && contents !~# '\%(^\|[^\r]\)\n\|\r$' ? 'dos' : 'unix'
enddef

def Lines(contents: string): list<string>
  const lines = split(contents, Format(contents) ==# 'dos' ? "\r\n" : "\n", true)
  return len(lines) > 1 && lines[-1] == '' ? lines[: -2] : lines
enddef

# An empty text has no line end, but what is written into it should get one.
def EndsLine(contents: string): bool
  return contents == '' || contents[-1 :] ==# "\n"
enddef

# -- showing --------------------------------------------------------------------------------------------------

def Open(diff: dict<any>)
  diff.before = win_getid()
  diff.left = Buffer(diff, 'current')
  diff.right = Buffer(diff, 'proposed')
  execute 'tab sbuffer' diff.left
  FillCurrent(diff)
  Fresh()
  diffthis
  execute 'rightbelow vertical sbuffer' diff.right
  FillProposed(diff)
  Fresh()
  diffthis
  GoToFirstChange()
  Watch(diff)
  events.Raise('DiffOpened', {diff: diff.id, path: diff.path})
  Explain(diff)
enddef

def Buffer(diff: dict<any>, side: string): number
  const buffer = bufadd($'ide-bridge://{side}/{diff.id}/{Name(diff.path)}')
  setbufvar(buffer, '&buftype', 'nofile')  # or loading it would look for a file of that name
  bufload(buffer)
  setbufvar(buffer, '&swapfile', false)
  setbufvar(buffer, '&bufhidden', 'hide')
  setbufvar(buffer, 'ale_enabled', 0)
  setbufvar(buffer, 'ide_bridge_diff', diff.id)
  return buffer
enddef

export def Name(path: string): string
  return fnamemodify(path, ':.')
enddef

# A split takes over how its window looks; a terminal or a file browser is no model.
def Fresh()
  setlocal nowinfixheight nowinfixwidth number< relativenumber< list< spell< signcolumn< cursorline< wrap<
enddef

def FillCurrent(diff: dict<any>)
  const own = buffers.BufferOf(diff.path)
  diff.unsaved = own > 0 && getbufvar(own, '&modified') ? true : false
  if diff.unsaved
    setline(1, getbufline(own, 1, '$'))
  elseif filereadable(diff.path)
    ReadFile(diff.path)
  endif
  DetectType(own)
  setlocal nomodified nomodifiable readonly
enddef

# As :edit would, so that encoding and line ends are no part of the difference.
def ReadFile(path: string)
  execute 'silent noautocmd keepalt keepjumps :0read ++edit' fnameescape(path)
  if line('$') > 1
    silent :$delete _
  endif
enddef

def DetectType(own: number)
  if own > 0 && getbufvar(own, '&filetype') != ''
    &l:filetype = getbufvar(own, '&filetype')
  elseif exists('#filetypedetect#BufRead')
    silent doautocmd <nomodeline> filetypedetect BufRead
  endif
enddef

def FillProposed(diff: dict<any>)
  setlocal undolevels=-1  # what was proposed cannot be undone, what the user changes can
  setline(1, Lines(diff.contents))
  setlocal undolevels<
  &l:filetype = getbufvar(diff.left, '&filetype')
  &l:fileformat = Format(diff.contents)
  &l:endofline = EndsLine(diff.contents)
  setlocal nofixendofline buftype=acwrite
  setlocal modified  # so that :x and ZZ write it, which keeps it
  diff.tick = b:changedtick
enddef

def GoToFirstChange()
  normal! gg
  if diff_hlID(1, 1) == 0 && diff_filler(1) == 0
    silent! normal! ]c
  endif
enddef

def Explain(diff: dict<any>)
  if diff.unsaved
    say.Warning($':w! keeps, :q rejects, "do" takes the left side over, which has unsaved changes: {Name(diff.path)}')
  else
    say.Info($'{Name(diff.path)}: :w keeps the right side, :q rejects it')
  endif
enddef

# -- watching the windows -------------------------------------------------------------------------------------

def Watch(diff: dict<any>)
  const [id, left, right] = [diff.id, diff.left, diff.right]
  augroup ide_bridge_diff
    execute $'autocmd BufWriteCmd <buffer={right}> ++nested Written({id}, expand("<afile>"))'
    execute $'autocmd TextChanged,InsertLeave <buffer={right}> Changed({id})'
    execute $'autocmd BufWinLeave,BufUnload <buffer={left}> Left({id})'
    execute $'autocmd BufWinLeave,BufUnload <buffer={right}> Left({id})'
    autocmd! ExitPre
    autocmd ExitPre * Exiting()
  augroup END
enddef

# The user writes the proposed text. What writes without him, such as an autocommand that saves everything, or
# :wall from another tab, decides nothing: as long as the buffer stays modified, Vim knows it was not written.
def Written(id: number, target: string)
  if !diffs->has_key(id) || expand('<stack>')->split('Autocommands for', true)->len() > 2
    return
  elseif target !~# '^ide-bridge://proposed/'  # :saveas has renamed the buffer already
    WriteCopy(diffs[id], target)
  elseif win_gettype() ==# 'autocmd'
    say.Warning($'the diff of {Name(diffs[id].path)} is not decided by writing everything: go to its tab')
  elseif Keep(id, v:cmdbang == 1)
    setlocal nomodified
    const diff = diffs->remove(id)
    timer_start(0, (_) => Wipe(diff))
  endif
enddef

def WriteCopy(diff: dict<any>, target: string)
  if filereadable(target) && v:cmdbang != 1
    say.Error($'{target} exists (add ! to override)')
  else
    writefile(buffers.Text(diff.right)->split("\n", true), target, 'b')
  endif
enddef

# Vim protects what the user has typed: then :q needs a "!", as in any buffer.
def Changed(id: number)
  const diff = diffs->get(id, {})
  if !empty(diff) && Edited(diff)
    setbufvar(diff.right, '&bufhidden', 'wipe')
  endif
enddef

def Edited(diff: dict<any>): bool
  return getbufvar(diff.right, 'changedtick') != diff.tick
enddef

# Once the command is over that closed one of the windows: a window cannot be closed while another is closing.
def Left(id: number)
  timer_start(0, (_) => LookAfter(id))
enddef

# When Vim has refused to close what the user changed, it is still his to decide, also with the left side gone.
def LookAfter(id: number)
  const diff = diffs->get(id, {})
  if empty(diff)
    return
  endif
  const shown = !win_findbuf(diff.right)->empty()
  if !shown || (win_findbuf(diff.left)->empty() && !Edited(diff))
    Decide(id, 'rejected')
    diffs->remove(id)
    Wipe(diff)
  endif
enddef

# :qall need not be said twice because of a proposal that the user has not touched.
def Exiting()
  for diff in values(diffs)
    if diff.right > 0 && !Edited(diff)
      setbufvar(diff.right, '&modified', false)
    endif
  endfor
enddef

# Closes what is ours and nothing else; the user is then where he came from, or stays where he went meanwhile.
def Wipe(diff: dict<any>)
  const ours = [diff.right, diff.left]->filter((_, buffer) => buffer > 0 && bufexists(buffer))
  const back = ours->index(bufnr()) >= 0 ? diff->get('before', 0) : win_getid()
  for buffer in ours
    execute 'silent bwipeout!' buffer
  endfor
  win_gotoid(back)
enddef
