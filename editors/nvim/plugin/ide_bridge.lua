-- ide_bridge: makes Neovim a first-class IDE for Claude Code and other agent CLIs.
-- Nothing happens before it is started; the rest is loaded then. See :help ide_bridge.

if vim.g.loaded_ide_bridge then
  return
end
vim.g.loaded_ide_bridge = 1

local command = vim.api.nvim_create_user_command

if vim.fn.has("nvim-0.7") == 0 or not command then
  -- Said when it is used, not at every start of an editor that cannot use it. Older ones have no other way.
  vim.cmd([[command! -bar -nargs=* IdeBridgeStart echoerr 'ide_bridge needs Neovim 0.7 or newer']])
  return
end

---@param words string[]|fun(): string[]
---@return fun(lead: string): string[]
local function among(words)
  return function(lead)
    local all = type(words) == "function" and words() or words
    return vim.tbl_filter(function(word) return vim.startswith(word, lead) end, all)
  end
end

---@param name string  of a function in lua/ide_bridge/init.lua
---@return fun(call: table)
local function run(name)
  return function(call)
    require("ide_bridge")["command_" .. name](call)
  end
end

command("IdeBridgeStart", run("start"), {
  bar = true, nargs = "*", complete = "dir", desc = "Attach to the bridge",
})
command("IdeBridgeStop", run("stop"), { bar = true, desc = "Detach from the bridge" })
command("IdeBridgeStatus", run("status"), { bar = true, desc = "Who is connected, and how" })
command("IdeBridgeSend", run("send"), {
  nargs = "*", range = true, complete = "file", desc = "Hand lines or files to the client",
})
command("IdeBridgeAccept", run("accept"), { bar = true, bang = true, desc = "Keep the proposed change" })
command("IdeBridgeReject", run("reject"), { bar = true, desc = "Reject the proposed change" })
command("IdeBridgeSharing", run("sharing"), {
  bar = true, nargs = "?", desc = "Tell or set what is shared unasked",
  complete = among({ "full", "path", "off" }),
})
command("IdeBridgeClaude", run("claude"), {
  nargs = "*", desc = "Show or hide Claude Code in a terminal window",
  complete = among({ "--continue", "--resume", "--model", "--permission-mode" }),
})
command("IdeBridgeAsk", run("ask"), { bang = true, nargs = "*", range = true, desc = "Ask Claude something" })
command("IdeBridgeSessions", run("sessions"), { bar = true, desc = "List the sessions, and open one" })

local sessions = among(function() return require("ide_bridge.sessions").ids() end)
command("IdeBridgeInterrupt", run("interrupt"), {
  bar = true, nargs = "?", complete = sessions, desc = "Interrupt Claude in a session",
})
command("IdeBridgeStopSession", run("stop_session"), {
  bar = true, nargs = "?", complete = sessions, desc = "End a session",
})

local approvals = among(function() return require("ide_bridge.approvals").ids() end)
command("IdeBridgeApprovals", run("approvals"), { bar = true, desc = "List what Claude wants to be allowed" })
command("IdeBridgeApprove", run("approve"), {
  bar = true, bang = true, nargs = "?", complete = approvals, desc = "Allow what Claude asks",
})
command("IdeBridgeDeny", run("deny"), { nargs = "*", complete = approvals, desc = "Deny what Claude asks" })

local map = vim.keymap.set
map("n", "<Plug>(ide-bridge-send)", ":<C-U>IdeBridgeSend<CR>", { silent = true })
map("x", "<Plug>(ide-bridge-send)", ":IdeBridgeSend<CR>", { silent = true })
map("n", "<Plug>(ide-bridge-accept)", ":<C-U>IdeBridgeAccept<CR>", { silent = true })
map("n", "<Plug>(ide-bridge-reject)", ":<C-U>IdeBridgeReject<CR>", { silent = true })
map("n", "<Plug>(ide-bridge-claude)", ":<C-U>IdeBridgeClaude<CR>", { silent = true })
map("n", "<Plug>(ide-bridge-ask)", ":<C-U>IdeBridgeAsk<CR>", { silent = true })
map("x", "<Plug>(ide-bridge-ask)", ":IdeBridgeAsk<CR>", { silent = true })

---@param name string
---@return boolean
local function asked(name)
  local value = vim.g["ide_bridge_" .. name]
  return value ~= nil and value ~= 0 and value ~= false
end

if asked("mappings") then
  require("ide_bridge").map_keys()
end

if asked("auto_start") then
  require("ide_bridge").start_with_editor()
end
