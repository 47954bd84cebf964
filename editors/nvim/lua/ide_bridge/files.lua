--- The files that are open: telling, saving, closing and loading them again.
---
--- It does not know selections or diffs, and never asks the user anything.
local buffers = require("ide_bridge.buffers")
local say = require("ide_bridge.say")
local selection = require("ide_bridge.selection")
local text = require("ide_bridge.text")

local M = {}

local api = vim.api

---@param buffer integer
---@param active integer?
---@return table
local function described(buffer, active)
  return {
    path = buffers.path(buffer),
    active = buffer == active,
    dirty = vim.bo[buffer].modified,
    language = vim.bo[buffer].filetype,
    lines = api.nvim_buf_is_loaded(buffer) and api.nvim_buf_line_count(buffer) or 0,
  }
end

--- The files in the buffer list, the most recently used first.
---@return table[]
function M.open()
  local active = selection.buffer()
  -- Only these two of each: the rest of it may be large.
  local used = api.nvim_eval("map(getbufinfo({'buflisted': 1}), '[v:val.bufnr, v:val.lastused]')")
  used = vim.tbl_filter(function(entry) return buffers.path(entry[1]) ~= nil end, used)
  table.sort(used, function(one, other)
    local one_first, other_first = one[1] == active, other[1] == active
    if one_first ~= other_first then
      return one_first
    end
    return one[2] == other[2] and one[1] < other[1] or one[2] > other[2]
  end)
  return vim.tbl_map(function(entry) return described(entry[1], active) end, used)
end

--- The file the user looks at.
---@return table?
function M.current()
  local buffer = selection.buffer()
  return buffer and described(buffer, buffer)
end

---@param path string
---@return { text: string, dirty: boolean }?
function M.read(path)
  local buffer = buffers.loaded(path)
  return buffer and { text = buffers.text(buffer), dirty = vim.bo[buffer].modified }
end

-- -- files that changed on disk under unsaved changes: writing one of them would make Neovim ask ---------------

local conflicts = {} ---@type table<integer, boolean>

--- Neovim has noticed that a file changed, and has loaded it again or not.
---@param buffer integer
function M.noticed(buffer)
  conflicts[buffer] = vim.bo[buffer].modified or nil
end

--- Buffer and file are the same again.
---@param buffer integer
function M.agreed(buffer)
  conflicts[buffer] = nil
end

-- Has Neovim compare a buffer with its file. Where it would ask the user it asks the autocommand instead, which
-- says nothing, so that nothing is done.
local function check_time(buffer)
  local asked = api.nvim_create_autocmd("FileChangedShell", {
    buffer = buffer,
    callback = function() M.noticed(buffer) end,
  })
  local fine, problem = pcall(vim.cmd, "silent checktime " .. buffer)
  api.nvim_del_autocmd(asked)
  if not fine then
    error(problem, 0)
  end
end

-- -- saving and closing ----------------------------------------------------------------------------------------

---@param path string
---@return boolean
function M.save(path)
  local buffer = buffers.loaded(path)
  if not buffer then
    return false
  end
  if vim.bo[buffer].modified then
    check_time(buffer)
    if conflicts[buffer] then
      say.fail(("%s has changed on disk since Neovim read it; the user has to decide"):format(path))
    end
    api.nvim_buf_call(buffer, function() vim.cmd("silent write") end)
  end
  return not vim.bo[buffer].modified
end

---@param path string
---@return boolean
function M.close(path)
  local buffer = buffers.of(path)
  if not buffer or not vim.bo[buffer].buflisted then
    return false
  end
  if vim.bo[buffer].modified then
    say.fail(("%s has unsaved changes"):format(path))
  end
  vim.cmd("silent bdelete " .. buffer)
  return true
end

-- -- loading again ---------------------------------------------------------------------------------------------

-- Neovim asks (W13) about a file that was not there when it was opened.
local function was_not_there(buffer)
  return vim.deep_equal(api.nvim_buf_get_lines(buffer, 0, 2, false), { "" })
end

-- Neovim goes by the time of the last change, and two changes may have the same.
local function is_stale(buffer)
  local encoding = vim.bo[buffer].fileencoding
  local file = (encoding == "" or encoding == "utf-8") and io.open(api.nvim_buf_get_name(buffer), "rb")
  if not file then
    return false
  end
  local contents = file:read("*a")
  file:close()
  return contents ~= nil and text.clean(contents) ~= buffers.text(buffer)
end

-- As 'autoread' does it: undo, cursor, marks and folds stay. The user's own setting is left as it is.
local function check_quietly(buffer)
  local before = vim.trim(vim.fn.execute("setlocal autoread?"))
  vim.cmd("setlocal autoread")
  local fine, problem = pcall(vim.cmd, "silent checktime " .. buffer)
  vim.cmd("setlocal " .. (before:find("^%-%-") and "autoread<" or before))
  if not fine then
    error(problem, 0)
  end
end

local function read_again(buffer)
  api.nvim_buf_call(buffer, function()
    if not was_not_there(buffer) then
      check_quietly(buffer)
    end
    if is_stale(buffer) then
      vim.cmd("silent keepalt edit")
    end
  end)
end

--- A client has written the file: show what is in it now, but never instead of what the user has not saved.
---@param path string
function M.reload(path)
  local buffer = buffers.loaded(path)
  if not buffer then
    return
  elseif not vim.bo[buffer].modified then
    read_again(buffer)
    return
  end
  M.agreed(buffer) -- or a second change would not be told
  check_time(buffer)
  if conflicts[buffer] then
    local changed = vim.fn.fnamemodify(path, ":.") .. " changed on disk under your unsaved changes"
    say.warning(changed .. ": :w! keeps yours, :e! takes the new text")
  end
end

return M
