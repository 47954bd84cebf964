--- Opening a file for the client, where a file belongs.
---
--- It does not know who asks, and never asks the user anything.
local buffers = require("ide_bridge.buffers")
local idle = require("ide_bridge.idle")
local say = require("ide_bridge.say")
local text = require("ide_bridge.text")

local M = {}

local api = vim.api

-- Another Neovim may have the file open; then it is opened read-only, as "(O)pen Read-Only" would. `:edit` lets an
-- autocommand say so, bufload() does not.
local function load(buffer)
  local asked = api.nvim_create_autocmd("SwapExists", {
    callback = function() vim.v.swapchoice = "o" end,
  })
  local fine, problem = pcall(api.nvim_buf_call, buffer, function() vim.cmd("silent keepalt edit") end)
  api.nvim_del_autocmd(asked)
  if not fine then
    error(problem, 0)
  end
end

---@param path string
---@return integer buffer
local function loaded(path)
  local buffer = buffers.of(path) or vim.fn.bufadd(path)
  vim.bo[buffer].buflisted = true
  if not api.nvim_buf_is_loaded(buffer) then
    load(buffer)
  end
  return buffer
end

local function in_diff()
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    if vim.b[api.nvim_win_get_buf(window)].ide_bridge_diff then
      return true
    end
  end
  return false
end

-- Whether a file may be shown in a window in place of what is there.
local function is_room(window)
  local buffer = api.nvim_win_get_buf(window)
  local free = not vim.bo[buffer].modified or vim.o.hidden or #vim.fn.win_findbuf(buffer) > 1
  local plain = vim.fn.win_gettype(window) == "" and api.nvim_win_get_config(window).relative == ""
  return plain and free and vim.bo[buffer].buftype == "" and not vim.wo[window].previewwindow
end

-- A window for files: this one, the last one, any in this tab, else a new one. Never one of a diff of ours.
local function make_room(buffer)
  local candidates = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(candidates, api.nvim_tabpage_list_wins(0))
  for _, window in ipairs(candidates) do
    if window ~= 0 and is_room(window) then
      api.nvim_set_current_win(window)
      api.nvim_win_set_buf(window, buffer)
      return
    end
  end
  vim.cmd((in_diff() and "tab sbuffer " or "aboveleft sbuffer ") .. buffer)
end

local function go(place)
  local number = math.min(place.line + 1, api.nvim_buf_line_count(0))
  local line = buffers.line(0, number)
  vim.fn.cursor(number, text.bytes(line, place.column) + 1)
end

local function select(start, stop)
  go(start)
  vim.cmd("normal! zv")
  if vim.deep_equal(start, stop) then
    return
  end
  vim.cmd("normal! v")
  go(stop)
  if vim.o.selection ~= "exclusive" then
    vim.cmd(vim.fn.col(".") > 1 and "normal! h" or "normal! k$")
  end
end

local function look(buffer, start, stop)
  vim.cmd("normal! m'")
  local windows = vim.fn.win_findbuf(buffer)
  table.sort(windows, function(one, other)
    return (vim.fn.win_id2win(one) > 0 and 1 or 0) > (vim.fn.win_id2win(other) > 0 and 1 or 0) -- this tab's first
  end)
  if #windows == 0 then
    make_room(buffer)
  elseif not vim.tbl_contains(windows, api.nvim_get_current_win()) then
    api.nvim_set_current_win(windows[1])
  end
  if start then
    select(start, stop or start)
  end
end

--- Open a file, in view when `focus`; at a place, or with a range selected.
---@param wish { path: string, start: table?, end: table?, focus: boolean? }
function M.visit(wish)
  if not buffers.of(wish.path) and vim.fn.filereadable(wish.path) == 0 then
    say.fail(("there is no file %s"):format(wish.path))
  end
  local buffer = loaded(wish.path)
  if wish.focus ~= false then
    idle.wait(function() look(buffer, wish.start, wish["end"]) end)
  end
end

return M
