" What users and their scripts may call; :help ide_bridge tells what each does.
"
" It is legacy script because only that may give public functions small letters. It does not know how anything is
" done: that is in ide_bridge/*.vim.

" How this Vim is connected, for 'statusline'; empty when it is not.
function! ide_bridge#statusline() abort
  return ide_bridge#status#Line()
endfunction

function! ide_bridge#start(folders) abort
  call ide_bridge#link#Start(a:folders)
endfunction

function! ide_bridge#stop() abort
  call ide_bridge#link#Stop()
endfunction

function! ide_bridge#status() abort
  call ide_bridge#status#Show()
endfunction

" Hands files, or lines of this one, to the client: range is how many numbers the user gave.
function! ide_bridge#send(range, first, last, names) abort
  call ide_bridge#mention#Send(a:range > 0, a:first, a:last, a:names)
endfunction

function! ide_bridge#accept(force) abort
  call ide_bridge#diff#Accept(a:force ? v:true : v:false)
endfunction

function! ide_bridge#reject() abort
  call ide_bridge#diff#Reject()
endfunction

function! ide_bridge#sharing(policy) abort
  call ide_bridge#status#Sharing(a:policy)
endfunction

function! ide_bridge#claude(mods, arguments) abort
  call ide_bridge#terminal#Toggle(a:mods, a:arguments)
endfunction

function! ide_bridge#complete_sharing(lead, line, position) abort
  return "full\npath\noff"
endfunction

function! ide_bridge#complete_claude(lead, line, position) abort
  return "--continue\n--resume\n--model\n--permission-mode"
endfunction
