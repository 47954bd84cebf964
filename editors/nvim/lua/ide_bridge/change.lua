--- The change that a tool would make to a file, to look at: a tab with the file as it is and as it would be.
---
--- It decides nothing, and does not know who asks.
local buffers = require("ide_bridge.buffers")
local question = require("ide_bridge.question")
local say = require("ide_bridge.say")

local M = {}

local api = vim.api

-- The text as the tool finds it: on the disk.
---@param path string
---@return string
local function before(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a") or ""
  if file then
    file:close()
  end
  return text
end

---@param text string
---@param edit { old_string: string, new_string: string, replace_all: boolean? }
---@return string
local function edited(text, edit)
  local pieces, from = {}, 1
  repeat
    local first, last = text:find(edit.old_string, from, true)
    if first then
      table.insert(pieces, text:sub(from, first - 1))
      from = last + 1
    end
  until not first or not edit.replace_all or edit.old_string == ""
  if #pieces == 0 then
    say.fail("what is to be replaced is not in the file")
  end
  table.insert(pieces, text:sub(from))
  return table.concat(pieces, edit.new_string)
end

---@param input table
---@param text string
---@return string
local function after(input, text)
  if input.content then
    return input.content
  end
  for _, edit in ipairs(input.edits or { input }) do
    text = edited(text, edit)
  end
  return text
end

---@param side string
---@param path string
---@param text string
local function fill(side, path, text)
  local buffer = api.nvim_get_current_buf()
  local own = buffers.of(path)
  vim.cmd("setlocal buftype=nofile bufhidden=wipe noswapfile nobuflisted")
  api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split((text:gsub("\n$", "")), "\n", { plain = true }))
  pcall(api.nvim_buf_set_name, buffer, ("ide-bridge://%s/%s"):format(side, vim.fn.fnamemodify(path, ":.")))
  vim.bo[buffer].filetype = own and vim.bo[own].filetype or ""
  vim.cmd("setlocal nomodifiable nomodified | diffthis")
  vim.keymap.set("n", "q", "<Cmd>tabclose<CR>", { buffer = buffer, nowait = true })
end

--- Show the change of a file that a tool wants to make.
---@param approval ide_bridge.Approval
function M.show(approval)
  local path = approval.input.file_path
  if not question.CHANGES[approval.tool] or not path then
    say.error("this changes no file that could be shown")
    return
  end
  local text = before(path)
  local fine, proposed = pcall(after, approval.input, text)
  if not fine then
    say.error(say.sentence(proposed))
    return
  end
  vim.cmd("tabnew")
  fill("before", path, text)
  vim.cmd("rightbelow vertical new")
  fill("after", path, proposed)
  say.info("q closes this; it allows and denies nothing")
end

return M
