--- The window of a session: a buffer to read, which goes on to be written to when no window shows it.
---
--- It does not know sessions, what stands in the buffer, or what its keys do.
local idle = require("ide_bridge.idle")

local M = {}

local api = vim.api
local LOOKS = "nonumber norelativenumber nolist nospell wrap linebreak breakindent signcolumn=no nocursorline"
local STATUS_LINE = "%<%f %{get(b:,'ide_bridge_state','')}%=%{get(b:,'ide_bridge_title','')} %P"

--- The buffer of this name, ready to be written to; a new one, or one that was unloaded, is empty.
---@param name string
---@return integer
function M.buffer(name)
  local buffer = vim.fn.bufadd(name)
  if not api.nvim_buf_is_loaded(buffer) then
    vim.bo[buffer].buftype = "nofile" -- or loading it would look for a file of that name
    vim.fn.bufload(buffer)
    local options = vim.bo[buffer]
    options.bufhidden, options.swapfile, options.buflisted = "hide", false, false
    options.undolevels, options.synmaxcol, options.modifiable = -1, 500, false
  end
  return buffer
end

-- The windows of a buffer in which the end is read.
local function followers(buffer)
  local last = api.nvim_buf_line_count(buffer)
  return vim.tbl_filter(function(window)
    return api.nvim_win_get_cursor(window)[1] == last
  end, vim.fn.win_findbuf(buffer))
end

--- Put what has changed into the buffer. Who reads the end goes on to do so, who reads elsewhere is left there.
---@param buffer integer
---@param change ide_bridge.Change
function M.write(buffer, change)
  local following = followers(buffer)
  vim.bo[buffer].modifiable = true
  if change.dropped > 0 then
    api.nvim_buf_set_lines(buffer, 0, change.dropped, false, {})
  end
  api.nvim_buf_set_lines(buffer, change.from, -1, false, change.lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
  for _, window in ipairs(following) do
    api.nvim_win_set_cursor(window, { api.nvim_buf_line_count(buffer), 0 })
  end
end

-- The windows of a buffer in this tab.
---@param buffer integer
---@return integer[]
local function here(buffer)
  return vim.tbl_filter(function(window) return vim.fn.win_id2win(window) > 0 end, vim.fn.win_findbuf(buffer))
end

---@param buffer integer
---@param focus boolean
---@param prepare fun()
local function open(buffer, focus, prepare)
  local back = api.nvim_get_current_win()
  vim.cmd(require("ide_bridge.options").get("session_window") .. " split")
  api.nvim_win_set_buf(0, buffer)
  if vim.bo[buffer].filetype == "" then
    vim.bo[buffer].filetype = "markdown"
    prepare() -- after the file type, which may have keys of its own
  end
  vim.cmd("setlocal " .. LOOKS)
  vim.wo.statusline = STATUS_LINE
  api.nvim_win_set_cursor(0, { api.nvim_buf_line_count(buffer), 0 })
  if not focus then
    api.nvim_set_current_win(back)
  end
end

--- Have it on the screen as soon as the user is not typing; he stays where he is, unless he wants to go there. A
--- buffer that is looked at for the first time is prepared, for its keys.
---@param buffer integer
---@param focus boolean
---@param prepare fun()
function M.show(buffer, focus, prepare)
  idle.wait(function()
    local shown = here(buffer)[1]
    if not shown then
      open(buffer, focus, prepare)
    elseif focus then
      api.nvim_set_current_win(shown)
    end
  end)
end

--- Close the windows of a buffer in this tab; the last one cannot be closed, and shows something else then.
---@param buffer integer
function M.hide(buffer)
  for _, window in ipairs(here(buffer)) do
    if #api.nvim_tabpage_list_wins(0) > 1 then
      api.nvim_win_close(window, false)
    else
      local other = vim.fn.bufnr("#")
      vim.cmd(other > 0 and other ~= buffer and "buffer #" or "enew")
    end
  end
end

return M
