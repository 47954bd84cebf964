--- Waiting until the user is not in the middle of typing.
---
--- A window that opens under somebody's hands gets the keys that were meant for another one. What moves the user
--- is done at once in Normal mode and in a terminal, else as soon as he is back there.
---
--- It does not know what is done.
local M = {}

local api = vim.api
local CALM = { n = true, nt = true, t = true }
local waiting = {} ---@type fun()[]
local group ---@type integer?

---@return boolean
local function calm()
  local mode = api.nvim_get_mode()
  return CALM[mode.mode] and not mode.blocking and vim.fn.getcmdwintype() == ""
end

local function run()
  local actions = waiting
  waiting = {}
  for _, action in ipairs(actions) do
    local done, problem = pcall(action)
    if not done then
      local say = require("ide_bridge.say")
      say.error(say.sentence(problem))
    end
  end
end

local function look()
  if group and calm() then
    api.nvim_del_augroup_by_id(group)
    group = nil
    run()
  end
end

local function watch()
  if group then
    return
  end
  group = api.nvim_create_augroup("ide_bridge_idle", {})
  api.nvim_create_autocmd({ "ModeChanged", "CmdwinLeave", "WinEnter", "CursorHold" }, {
    group = group,
    -- Not inside the autocommand: the cmdline window, for one, is still there then.
    callback = function() vim.schedule(look) end,
  })
end

---@param action fun()
function M.wait(action)
  if #waiting == 0 and calm() then
    action()
    return
  end
  table.insert(waiting, action)
  watch()
end

return M
