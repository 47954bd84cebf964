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

---@param words string[]
---@return fun(lead: string): string[]
local function among(words)
  return function(lead)
    return vim.tbl_filter(function(word) return vim.startswith(word, lead) end, words)
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

local map = vim.keymap.set
map("n", "<Plug>(ide-bridge-send)", ":<C-U>IdeBridgeSend<CR>", { silent = true })
map("x", "<Plug>(ide-bridge-send)", ":IdeBridgeSend<CR>", { silent = true })
map("n", "<Plug>(ide-bridge-accept)", ":<C-U>IdeBridgeAccept<CR>", { silent = true })
map("n", "<Plug>(ide-bridge-reject)", ":<C-U>IdeBridgeReject<CR>", { silent = true })
map("n", "<Plug>(ide-bridge-claude)", ":<C-U>IdeBridgeClaude<CR>", { silent = true })

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
