--- A page to read, in a window below the others; `q` closes it.
---
--- It does not know what is on it.
local M = {}

local api = vim.api

---@param name string
---@return integer buffer
local function opened(name, height)
  local buffer = api.nvim_create_buf(false, true)
  vim.cmd(("botright %dsplit"):format(height))
  api.nvim_win_set_buf(0, buffer)
  api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].bufhidden = "wipe"
  vim.cmd("setlocal nonumber norelativenumber nolist nospell winfixheight signcolumn=no")
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buffer, nowait = true })
  return buffer
end

--- Show these lines, in place of those shown under the same name before.
---@param name string
---@param lines string[]
function M.show(name, lines)
  local buffer = vim.fn.bufnr("^" .. name .. "$")
  local window = vim.fn.win_findbuf(buffer)[1]
  if window then
    api.nvim_set_current_win(window)
  else
    buffer = opened(name, math.min(#lines, math.floor(vim.o.lines / 2)))
  end
  vim.bo[buffer].modifiable = true
  api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  api.nvim_win_set_cursor(0, { 1, 0 })
end

return M
