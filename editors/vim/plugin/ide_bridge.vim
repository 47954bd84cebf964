" ide_bridge: makes Vim a first-class IDE for Claude Code and other agent CLIs.
" Nothing happens before it is started; the rest is loaded then. See :help ide_bridge.

if exists('g:loaded_ide_bridge')
  finish
endif
let g:loaded_ide_bridge = 1

if has('nvim') || !has('vim9script') || v:version < 900 || !has('channel') || !has('job') || !has('timers')
  " Said when it is used, not at every start of an editor that cannot use it.
  command! -bar -nargs=* IdeBridgeStart echohl ErrorMsg
        \ | echo 'ide_bridge needs Vim 9.0 with +channel, +job and +timers (Neovim: editors/nvim)' | echohl None
  finish
endif

command! -bar -nargs=* -complete=dir IdeBridgeStart call ide_bridge#start([<f-args>])
command! -bar IdeBridgeStop call ide_bridge#stop()
command! -bar IdeBridgeStatus call ide_bridge#status()
command! -nargs=* -range=0 -complete=file IdeBridgeSend call ide_bridge#send(<range>, <line1>, <line2>, [<f-args>])
command! -bar -bang IdeBridgeAccept call ide_bridge#accept(<bang>0)
command! -bar IdeBridgeReject call ide_bridge#reject()
command! -bar -nargs=? -complete=custom,ide_bridge#complete_sharing
      \ IdeBridgeSharing call ide_bridge#sharing(<q-args>)
command! -nargs=* -complete=custom,ide_bridge#complete_claude
      \ IdeBridgeClaude call ide_bridge#claude(<q-mods>, [<f-args>])
command! -bang -nargs=* -range=0 IdeBridgeAsk call ide_bridge#ask(<bang>0, <range>, <line1>, <line2>, <q-args>)
command! -bar IdeBridgeSessions call ide_bridge#sessions()
command! -bar -nargs=? -complete=custom,ide_bridge#complete_session
      \ IdeBridgeInterrupt call ide_bridge#interrupt(<q-args>)
command! -bar -nargs=? -complete=custom,ide_bridge#complete_session
      \ IdeBridgeStopSession call ide_bridge#stop_session(<q-args>)
command! -bar IdeBridgeApprovals call ide_bridge#approvals()
command! -bar -bang -nargs=? -complete=custom,ide_bridge#complete_approval
      \ IdeBridgeApprove call ide_bridge#approve(<bang>0, <q-args>)
command! -nargs=* -complete=custom,ide_bridge#complete_approval IdeBridgeDeny call ide_bridge#deny(<q-args>)

nnoremap <silent> <Plug>(ide-bridge-send) :<C-U>IdeBridgeSend<CR>
xnoremap <silent> <Plug>(ide-bridge-send) :IdeBridgeSend<CR>
nnoremap <silent> <Plug>(ide-bridge-accept) :<C-U>IdeBridgeAccept<CR>
nnoremap <silent> <Plug>(ide-bridge-reject) :<C-U>IdeBridgeReject<CR>
nnoremap <silent> <Plug>(ide-bridge-claude) :<C-U>IdeBridgeClaude<CR>
nnoremap <silent> <Plug>(ide-bridge-ask) :<C-U>IdeBridgeAsk<CR>
xnoremap <silent> <Plug>(ide-bridge-ask) :IdeBridgeAsk<CR>

if get(g:, 'ide_bridge_mappings', 0)
  nmap <Leader>as <Plug>(ide-bridge-send)
  xmap <Leader>as <Plug>(ide-bridge-send)
  nmap <Leader>aa <Plug>(ide-bridge-accept)
  nmap <Leader>ar <Plug>(ide-bridge-reject)
  nmap <Leader>ac <Plug>(ide-bridge-claude)
  nmap <Leader>aq <Plug>(ide-bridge-ask)
  xmap <Leader>aq <Plug>(ide-bridge-ask)
endif

if get(g:, 'ide_bridge_auto_start', 0)
  augroup ide_bridge_auto_start
    autocmd!
    autocmd VimEnter * ++once call ide_bridge#start([])
  augroup END
endif
