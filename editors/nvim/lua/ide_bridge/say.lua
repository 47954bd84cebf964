--- Sentences for the user: one line each, never a prompt to press Enter.
---
--- It does not know what they are about.
local M = {}

local KEPT = 20
local said = {} ---@type string[]

---@param text string
---@return string
local function shortened(text)
  local width = vim.v.echospace
  while vim.fn.strdisplaywidth(text) > width and text ~= "" do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 2) .. "…"
  end
  return text
end

-- Whoever has replaced vim.notify has room for the whole sentence; Neovim's own has one line.
local function notify(text, level)
  local builtin = debug.getinfo(vim.notify, "S").source:find("^@vim/_")
  if builtin and #vim.api.nvim_list_uis() > 0 then
    vim.cmd("redraw") -- or a second line would scroll, and ask for Enter
    text = shortened("ide_bridge: " .. text)
  end
  vim.notify(text, level, { title = "ide_bridge" })
end

---@param text string
---@param level integer
local function say(text, level)
  local line = text:gsub("%c+", " ")
  table.insert(said, os.date("%H:%M:%S ") .. line)
  if #said > KEPT then
    table.remove(said, 1)
  end
  vim.schedule(function() notify(line, level) end)
end

---@param text string
function M.info(text)
  say(text, vim.log.levels.INFO)
end

---@param text string
function M.warning(text)
  say(text, vim.log.levels.WARN)
end

---@param text string
function M.error(text)
  say(text, vim.log.levels.ERROR)
end

--- The last ones in full, oldest first.
---@return string[]
function M.recent()
  return said
end

--- A problem as a sentence, without Lua's or Vim's own preface to it.
---@param problem any
---@return string
function M.sentence(problem)
  if type(problem) == "table" and problem.sentence then
    return problem.sentence
  end
  local line = tostring(problem):match("^[^\n]*")
  return line:match("Vim%b():(.*)$") or line:match("^.*%.lua:%d+: (.*)$") or line
end

--- Fail with a sentence that is shown as it is.
---@param sentence string
function M.fail(sentence)
  error({ sentence = sentence }, 0)
end

return M
