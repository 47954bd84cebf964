--- Changing what a tool is given before it is allowed: the input as JSON, in a buffer.
---
--- Writing the buffer allows it as it is then; closing it leaves the question open.
---
--- It does not know tools.
local say = require("ide_bridge.say")

local M = {}

local api = vim.api
local edited = {} ---@type table<string, integer>  the buffer, by the approval's id

---@param before string
---@param items string[]
---@param after string
---@param indent string
---@return string
local function enclosed(before, items, after, indent)
  local inside = table.concat(items, ",\n" .. indent .. "  ")
  return ("%s\n%s  %s\n%s%s"):format(before, indent, inside, indent, after)
end

-- JSON to read: an element a line, names in order.
---@param value any
---@param indent string
---@return string
local function pretty(value, indent)
  if type(value) ~= "table" or next(value) == nil then
    return vim.json.encode(value)
  end
  local items, deeper = {}, indent .. "  "
  if value[1] ~= nil then
    for _, item in ipairs(value) do
      table.insert(items, pretty(item, deeper))
    end
    return enclosed("[", items, "]", indent)
  end
  local names = vim.tbl_keys(value)
  table.sort(names)
  for _, name in ipairs(names) do
    table.insert(items, ("%s: %s"):format(vim.json.encode(name), pretty(value[name], deeper)))
  end
  return enclosed("{", items, "}", indent)
end

---@param approval ide_bridge.Approval
---@param buffer integer
---@param text string  as it was offered
local function allow(approval, buffer, text)
  local now = table.concat(api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
  local fine, changed = pcall(vim.json.decode, now)
  if not fine then
    say.error("this is no JSON: " .. say.sentence(changed))
  elseif type(changed) ~= "table" or changed[1] ~= nil then
    say.error("this must be a JSON object, in { and }")
  else
    vim.bo[buffer].modified = false
    local input = now ~= text and changed or nil
    require("ide_bridge.approvals").decide(approval, { behavior = "allow", input = input })
  end
end

-- Whether the user has typed the command that runs now; it is all that Neovim 0.7 can tell.
local typed = false

-- What writes without the user, such as an autocommand that saves everything, allows nothing.
local function is_automatic()
  if vim.fn.has("nvim-0.8") == 0 then
    return not typed
  end
  local _, depth = vim.fn.expand("<stack>"):gsub("Autocommands for", "")
  return depth > 1
end

local function on_command()
  typed = not vim.v.event.abort
  vim.schedule(function() typed = false end)
end

---@param approval ide_bridge.Approval
---@param buffer integer
---@param text string
local function watch(approval, buffer, text)
  api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buffer,
    callback = function()
      if not edited[approval.id] then
        say.error("this is no longer asked")
      elseif api.nvim_get_current_buf() == buffer and not is_automatic() then
        allow(approval, buffer, text)
      end
    end,
  })
  api.nvim_create_autocmd("CmdlineLeave", { buffer = buffer, callback = function() on_command() end })
  vim.keymap.set("n", "ZZ", ":x<CR>", { buffer = buffer, silent = true }) -- a command, which can be told
end

--- Show the input of a tool.
---@param approval ide_bridge.Approval
function M.open(approval)
  if approval.kind ~= "tool" then
    say.error("this cannot be changed here; a allows or answers it, d denies it")
    return
  end
  local buffer = vim.fn.bufadd("ide-bridge://input/" .. approval.id)
  local text = pretty(approval.input, "")
  edited[approval.id] = buffer
  vim.cmd("botright sbuffer " .. buffer)
  vim.cmd("setlocal buftype=acwrite bufhidden=wipe noswapfile nobuflisted")
  api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, "\n", { plain = true }))
  vim.cmd("setlocal filetype=json nomodified")
  watch(approval, buffer, text)
  say.info(":w allows it as it is here, :q leaves the question open: " .. approval.title)
end

--- The question is no longer open.
---@param id string
function M.forget(id)
  local buffer = edited[id]
  edited[id] = nil
  if buffer and api.nvim_buf_is_valid(buffer) then
    api.nvim_buf_delete(buffer, { force = true })
  end
end

return M
