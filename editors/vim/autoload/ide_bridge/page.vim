vim9script
# A page to read, in a window below the others; `q` closes it.
#
# It does not know what is on it.

# Show these lines, in place of those shown under the same name before.
export def Show(name: string, lines: list<string>)
  const window = bufwinid(name)
  if window >= 0
    win_gotoid(window)
  else
    execute 'botright :' .. min([len(lines), &lines * 2 / 3]) .. 'new'
    setlocal buftype=nofile bufhidden=wipe noswapfile nobuflisted nonumber norelativenumber winfixheight
    execute 'silent file' name
    nnoremap <buffer> <silent> <nowait> q <Cmd>close<CR>
  endif
  setlocal modifiable
  silent deletebufline(bufnr(), 1, '$')
  setline(1, lines)
  setlocal nomodifiable nomodified
  cursor(1, 1)
enddef
