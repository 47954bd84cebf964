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

" Asks Claude something: range is how many numbers the user gave; an empty question is asked for.
function! ide_bridge#ask(new, range, first, last, question) abort
  call ide_bridge#ask#Command(a:new ? v:true : v:false, a:range, a:first, a:last, a:question)
endfunction

function! ide_bridge#sessions() abort
  call ide_bridge#sessions#List()
endfunction

function! ide_bridge#interrupt(session) abort
  call ide_bridge#sessions#Interrupt(a:session)
endfunction

function! ide_bridge#stop_session(session) abort
  call ide_bridge#sessions#StopOne(a:session)
endfunction

function! ide_bridge#approvals() abort
  call ide_bridge#approvals#List()
endfunction

" With for_session, the like of it is not asked again in the same session.
function! ide_bridge#approve(for_session, approval) abort
  call ide_bridge#approvals#Approve(a:approval, a:for_session ? v:true : v:false)
endfunction

" What begins with the id of an approval means that one; the rest is the reason.
function! ide_bridge#deny(words) abort
  call ide_bridge#approvals#Deny(a:words)
endfunction

function! ide_bridge#complete_session(lead, line, position) abort
  return join(ide_bridge#sessions#Complete(), "\n")
endfunction

function! ide_bridge#complete_approval(lead, line, position) abort
  return join(ide_bridge#approvals#Complete(), "\n")
endfunction

function! ide_bridge#complete_sharing(lead, line, position) abort
  return "full\npath\noff"
endfunction

function! ide_bridge#complete_claude(lead, line, position) abort
  return "--continue\n--resume\n--model\n--permission-mode"
endfunction
