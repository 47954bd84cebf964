--- What happens in Neovim, told to the bridge; and what happens here, told to the user's autocommands.
---
--- It does not know what becomes of it.
local buffers = require("ide_bridge.buffers")
local files = require("ide_bridge.files")
local link = require("ide_bridge.link")
local say = require("ide_bridge.say")
local selection = require("ide_bridge.selection")

local M = {}

local api = vim.api
local opened = {} ---@type table<integer, string>
local focused ---@type string?
local group ---@type integer?

local function tell_focused()
  local path = buffers.path(api.nvim_get_current_buf())
  if path then
    focused = path
    link.notify("fileFocused", { path = path })
  end
end

local function on_closed(event)
  local path = opened[event.buf]
  if path then
    opened[event.buf] = nil
    focused = focused ~= path and focused or nil
    selection.forget(path)
    link.notify("fileClosed", { path = path })
  end
end

local function on_opened(event)
  local path = buffers.path(event.buf)
  if path == opened[event.buf] then
    return
  end
  on_closed(event)
  if path and vim.bo[event.buf].buflisted then
    opened[event.buf] = path
    link.notify("fileOpened", { path = path })
  end
end

local function on_enter()
  local buffer = api.nvim_get_current_buf()
  on_opened({ buf = buffer }) -- one that was hidden from the list may have come into it
  local path = buffers.path(buffer)
  if path and path ~= focused then
    tell_focused()
  end
  selection.report()
end

local function on_read(event)
  files.agreed(event.buf)
  on_opened(event)
end

local function on_saved(event)
  on_read(event)
  local path = buffers.path(event.buf)
  if path then
    link.notify("fileSaved", { path = path })
  end
end

-- Once the command is over: it may pass through a file on its way to a terminal, and what was selected before is
-- then what the user wants to talk about.
local function later(callback)
  return function()
    vim.schedule(function()
      if group then
        callback()
      end
    end)
  end
end

local report_later = later(selection.report)

local function on_moved()
  if selection.selecting() then
    selection.report()
  else
    report_later()
  end
end

local function on(names, callback, pattern)
  api.nvim_create_autocmd(names, {
    group = group,
    pattern = pattern,
    -- A callback that returns true would delete its autocommand.
    callback = function(event) callback(event) end,
  })
end

--- Begin to listen.
function M.start()
  group = api.nvim_create_augroup("ide_bridge", {})
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    opened[buffer] = vim.bo[buffer].buflisted and buffers.path(buffer) or nil
  end
  on({ "CursorMoved", "CursorMovedI", "TextChanged", "TextChangedI" }, on_moved)
  on("ModeChanged", on_moved, "*:[vV\22sS\19ni]*") -- nothing to tell when only the command line is entered
  on({ "BufEnter", "WinEnter" }, later(on_enter))
  on("FocusGained", tell_focused)
  on({ "BufReadPost", "BufNewFile", "BufFilePost" }, on_read)
  on({ "BufDelete", "BufWipeout" }, on_closed)
  on("BufWritePost", on_saved)
  on("FileChangedShellPost", function(event) files.noticed(event.buf) end)
  on("DiagnosticChanged", function(event) require("ide_bridge.diagnostics").changed(event.buf) end)
  on("VimLeavePre", link.leave)
  on_enter()
end

--- Listen no longer.
function M.stop()
  if group then
    api.nvim_del_augroup_by_id(group)
  end
  group, opened, focused = nil, {}, nil
end

--- Run the user's autocommands `User IdeBridge…`. They find the details in `g:ide_bridge_event`, and where Neovim
--- can carry them (0.8) in the callback's `data` too.
---@param name string
---@param details table
function M.raise(name, details)
  vim.g.ide_bridge_event = details
  local options = { pattern = "IdeBridge" .. name, modeline = false }
  if vim.fn.has("nvim-0.8") == 1 then
    options.data = details
  end
  local fine, problem = pcall(api.nvim_exec_autocmds, "User", options)
  vim.g.ide_bridge_event = nil
  if not fine then
    say.error(say.sentence(problem)) -- the user's own, which must not stop what we are doing
  end
end

return M
