--- A question for permission in words: what is asked, what may be answered, and how it ended.
---
--- It does not know where it is shown, or how it is answered.
local lines = require("ide_bridge.lines")

local M = {}

local INPUT = 20 -- lines shown of each thing that a tool is given
local INDENT = "    "

--- The tools whose change of a file can be shown.
M.CHANGES = { Edit = true, MultiEdit = true, Write = true }

---@class ide_bridge.Approval
---@field id string
---@field session string
---@field tool string
---@field kind "tool"|"question"|"plan"
---@field title string
---@field input table
---@field suggestions table[]?
---@field asked number

---@param name string
---@param value any
---@return string[]
local function named(name, value)
  local shown = lines.of(type(value) == "string" and value or vim.json.encode(value))
  if #shown == 1 then
    return { ("%s: %s"):format(name, shown[1]) }
  end
  return vim.list_extend({ name .. ":" }, lines.indented(lines.cut(shown, INPUT, "e"), "  "))
end

--- A question and what may be chosen, numbered.
---@param asked table
---@return string[]
function M.choices(asked)
  local shown = { lines.one(asked.question) }
  for index, option in ipairs(asked.options or {}) do
    local more = (option.description or "") ~= "" and ": " .. lines.one(option.description) or ""
    table.insert(shown, ("%d. %s%s"):format(index, lines.one(option.label), more))
  end
  return shown
end

---@param approval ide_bridge.Approval
---@return string[]
local function details(approval)
  if approval.kind == "question" then
    local shown = {}
    for _, question in ipairs(approval.input.questions or {}) do
      vim.list_extend(shown, M.choices(question))
    end
    return shown
  elseif approval.kind == "plan" then
    return lines.of(approval.input.plan or "")
  end
  local shown = {}
  local names = vim.tbl_keys(approval.input)
  table.sort(names)
  for _, name in ipairs(names) do
    vim.list_extend(shown, named(name, approval.input[name]))
  end
  for _, name in ipairs({ "description", "reason", "blockedPath" }) do
    if (approval[name] or "") ~= "" then
      vim.list_extend(shown, named(name == "blockedPath" and "blocked path" or name, approval[name]))
    end
  end
  return shown
end

---@param approval ide_bridge.Approval
---@return string
local function keys(approval)
  if approval.kind == "question" then
    return "a answer · d deny"
  elseif approval.kind == "plan" then
    return "a allow · d deny"
  end
  local words = { "a allow" }
  if #(approval.suggestions or {}) > 0 then
    table.insert(words, "A allow for the session")
  end
  vim.list_extend(words, { "d deny", "e edit" })
  if M.CHANGES[approval.tool] then
    table.insert(words, "= show the change")
  end
  return table.concat(words, " · ")
end

--- All that is to be read, with the keys that answer it.
---@param approval ide_bridge.Approval
---@return string[]
function M.lines(approval)
  local shown = { ("? %s [%s]"):format(lines.one(approval.title), approval.id) }
  vim.list_extend(shown, lines.indented(details(approval), INDENT))
  return vim.list_extend(shown, { "  " .. keys(approval) })
end

--- How a question for permission ended, in words.
---@param closed { outcome: string, by: string?, reason: string? }
---@return string
function M.outcome(closed)
  local by = (closed.by or "") ~= "" and " by " .. closed.by or ""
  local reason = (closed.reason or "") ~= "" and (" (%s)"):format(lines.one(closed.reason)) or ""
  return closed.outcome .. by .. reason
end

return M
