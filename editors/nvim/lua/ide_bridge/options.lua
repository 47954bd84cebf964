--- What the user has chosen: by `setup`, else by `g:ide_bridge_…`, else what we think best.
---
--- It does not know what an option does.
local M = {}

---@class ide_bridge.Options
---@field command string[]?   how to run ide-bridge; found by itself when not given
---@field auto_start boolean? whether it starts with Neovim
---@field mappings boolean?   whether the offered keys are mapped
---@field session_window string? where the window of a session opens
local defaults = { auto_start = false, mappings = false, session_window = "botright vertical" }

local given = {} ---@type ide_bridge.Options

---@param options ide_bridge.Options
---@return ide_bridge.Options all that hold now
function M.set(options)
  for name in pairs(options) do
    if name ~= "command" and defaults[name] == nil then
      require("ide_bridge.say").warning(("setup does not know the option %s"):format(name))
    end
  end
  given = options
  return { command = M.get("command"), auto_start = M.get("auto_start"), mappings = M.get("mappings") }
end

---@param name string
---@return any
function M.get(name)
  if given[name] ~= nil then
    return given[name]
  end
  local value = vim.g["ide_bridge_" .. name]
  if value == nil then
    return defaults[name]
  end
  return value ~= 0 and value or false -- Vim script has numbers for booleans
end

return M
