--- What users and their configurations may call; :help ide_bridge tells what each does.
---
--- It does not know how anything is done: that is in the files beside it, each loaded when it is first needed.
local M = {}

---@class ide_bridge.Call  what Neovim gives the function of a user command
---@field fargs string[]
---@field args string
---@field bang boolean
---@field range integer
---@field line1 integer
---@field line2 integer
---@field mods string

--- Options may be given here or as `g:ide_bridge_…`; neither is needed.
---@param options ide_bridge.Options?
function M.setup(options)
  local chosen = require("ide_bridge.options").set(options or {})
  if chosen.mappings then
    M.map_keys()
  end
  if chosen.auto_start then
    M.start_with_editor()
  end
end

--- Attach to the bridge of these folders, or of the working folder; it is started when none runs.
---@param folders string[]?
function M.start(folders)
  require("ide_bridge.link").start(folders or {})
end

--- Detach; the bridge goes on.
function M.stop()
  require("ide_bridge.link").stop()
end

--- Hand files to the client.
---@param paths string[]
function M.send(paths)
  require("ide_bridge.mention").files(paths)
end

--- Hand lines of the current file to the client; the first line is 1.
---@param first integer
---@param last integer
function M.send_lines(first, last)
  require("ide_bridge.mention").lines(first, last)
end

--- Keep the diff of this tab, or the only one.
---@param options { force: boolean }?
function M.accept(options)
  require("ide_bridge.diff").accept(options ~= nil and options.force)
end

--- Reject the diff of this tab, or the only one.
function M.reject()
  require("ide_bridge.diff").reject()
end

--- Tell what is shared unasked, or change it.
---@param policy "full"|"path"|"off"|nil
function M.sharing(policy)
  require("ide_bridge.status").sharing(policy)
end

--- Show Claude Code in a terminal window, or hide it.
---@param arguments string[]?
function M.claude(arguments)
  require("ide_bridge.terminal").toggle(arguments or {}, "")
end

--- Ask Claude something; without a text the user is asked for it.
---@param question ide_bridge.Question|string|nil
function M.ask(question)
  local ask = require("ide_bridge.ask")
  if question then
    ask.ask(type(question) == "string" and { text = question } or question)
  else
    ask.next()
  end
end

--- Allow what Claude asks: the approval of this id, or the only one.
---@param approval string?
---@param options { for_session: boolean }?
function M.approve(approval, options)
  require("ide_bridge.approvals").approve(approval, options ~= nil and options.for_session)
end

--- Deny what Claude asks: the approval of this id, or the only one.
---@param approval string?
---@param reason string?
function M.deny(approval, reason)
  require("ide_bridge.approvals").deny(vim.trim(("%s %s"):format(approval or "", reason or "")))
end

--- How this Neovim is connected, for 'statusline'; empty when it is not.
---@return string
function M.statusline()
  local status = package.loaded["ide_bridge.status"] -- what was never started need not be loaded to be asked
  return status and status.line() or ""
end

--- Start now, or when Neovim has finished starting.
function M.start_with_editor()
  if vim.v.vim_did_enter == 1 then
    M.start()
    return
  end
  vim.api.nvim_create_autocmd("VimEnter", {
    group = vim.api.nvim_create_augroup("ide_bridge_auto_start", {}),
    once = true,
    callback = function() M.start() end,
  })
end

--- The keys offered to those who ask for them.
function M.map_keys()
  local map = vim.keymap.set
  map({ "n", "x" }, "<Leader>as", "<Plug>(ide-bridge-send)", { desc = "Send to Claude" })
  map("n", "<Leader>aa", "<Plug>(ide-bridge-accept)", { desc = "Keep the proposed change" })
  map("n", "<Leader>ar", "<Plug>(ide-bridge-reject)", { desc = "Reject the proposed change" })
  map("n", "<Leader>ac", "<Plug>(ide-bridge-claude)", { desc = "Show or hide Claude" })
  map({ "n", "x" }, "<Leader>aq", "<Plug>(ide-bridge-ask)", { desc = "Ask Claude" })
end

---@param call ide_bridge.Call
function M.command_start(call)
  if #call.fargs == 0 and require("ide_bridge.link").runs() then
    require("ide_bridge.say").info("runs already; :IdeBridgeStatus tells more")
    return
  end
  M.start(vim.tbl_map(vim.fn.expand, call.fargs))
end

function M.command_stop()
  M.stop()
end

function M.command_status()
  require("ide_bridge.status").show()
end

---@param call ide_bridge.Call
function M.command_send(call)
  require("ide_bridge.mention").command(call)
end

---@param call ide_bridge.Call
function M.command_accept(call)
  M.accept({ force = call.bang })
end

function M.command_reject()
  M.reject()
end

---@param call ide_bridge.Call
function M.command_sharing(call)
  M.sharing(call.fargs[1])
end

---@param call ide_bridge.Call
function M.command_claude(call)
  require("ide_bridge.terminal").toggle(call.fargs, call.mods)
end

---@param call ide_bridge.Call
function M.command_ask(call)
  require("ide_bridge.ask").command(call)
end

function M.command_sessions()
  require("ide_bridge.sessions").list()
end

---@param call ide_bridge.Call
function M.command_interrupt(call)
  require("ide_bridge.sessions").interrupt(call.args)
end

---@param call ide_bridge.Call
function M.command_stop_session(call)
  require("ide_bridge.sessions").stop(call.args)
end

function M.command_approvals()
  require("ide_bridge.approvals").list()
end

---@param call ide_bridge.Call
function M.command_approve(call)
  M.approve(call.args, { for_session = call.bang })
end

---@param call ide_bridge.Call
function M.command_deny(call)
  require("ide_bridge.approvals").deny(call.args)
end

return M
