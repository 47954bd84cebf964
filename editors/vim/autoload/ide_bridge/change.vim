vim9script
# The change that a tool would make to a file, to look at: a tab with the file as it is and as it would be.
#
# It decides nothing, and does not know who asks.

import autoload 'ide_bridge/buffers.vim'
import autoload 'ide_bridge/question.vim'
import autoload 'ide_bridge/say.vim'

export def Show(approval: dict<any>)
  const path = approval.input->get('file_path', '')
  if question.CHANGES->index(approval.tool) < 0 || path == ''
    say.Error('this changes no file that could be shown')
    return
  endif
  const before = Before(path)
  try
    const after = After(approval.input, before)
    Open(path, before, after)
  catch /^ide_bridge:/
    say.Error(say.Sentence(v:exception))
  endtry
enddef

# The text as the tool finds it: on the disk.
def Before(path: string): string
  return filereadable(path) ? readfile(path, 'b')->join("\n") : ''
enddef

def After(input: dict<any>, before: string): string
  if input->has_key('content')
    return input.content
  endif
  var text = before
  for edit in input->get('edits', [input])
    text = Edited(text, edit.old_string, edit.new_string, edit->get('replace_all', false))
  endfor
  return text
enddef

def Edited(text: string, old: string, new: string, everywhere: bool): string
  const at = stridx(text, old)
  if at < 0
    throw 'ide_bridge: what is to be replaced is not in the file'
  elseif everywhere && old != ''
    return text->split('\V' .. old->escape('\')->substitute("\n", '\\n', 'g'), true)->join(new)
  endif
  return strpart(text, 0, at) .. new .. strpart(text, at + strlen(old))
enddef

def Open(path: string, before: string, after: string)
  tabnew
  Fill($'ide-bridge://before/{fnamemodify(path, ":.")}', before, path)
  rightbelow vertical new
  Fill($'ide-bridge://after/{fnamemodify(path, ":.")}', after, path)
  say.Info('q closes this; it allows and denies nothing')
enddef

def Fill(name: string, text: string, path: string)
  setlocal buftype=nofile bufhidden=wipe noswapfile nobuflisted
  setline(1, text->substitute('\n$', '', '')->split("\n", true))
  execute 'silent! file' fnameescape(name)
  const own = buffers.BufferOf(path)
  &l:filetype = own > 0 ? getbufvar(own, '&filetype') : ''
  setlocal nomodifiable nomodified
  diffthis
  nnoremap <buffer> <silent> <nowait> q <Cmd>tabclose<CR>
enddef
