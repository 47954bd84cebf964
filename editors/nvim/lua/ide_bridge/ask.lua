--- Asking Claude something, with what the user has selected.
---
--- It does not know which session it goes to, unless it is asked in the window of one; or what is answered.
local buffers = require("ide_bridge.buffers")
local prompt = require("ide_bridge.prompt")
local selection = require("ide_bridge.selection")
local sessions = require("ide_bridge.sessions")

local M = {}

---@class ide_bridge.Question
---@field text string?
---@field new boolean?         whether it begins a session
---@field session string?      which session it is for; else the one this editor used last
---@field path string?
---@field start table?
---@field end table?
---@field selection string?

-- What is asked about: the lines of the range, or exactly what was selected if they are those of Visual mode. Of
-- what is no file, nothing.
---@param call ide_bridge.Call
---@return ide_bridge.Question
local function about(call)
  local path = call.range > 0 and buffers.path(vim.api.nvim_get_current_buf())
  if not path then
    return {}
  end
  local visual = call.range == 2 and call.line1 == vim.fn.line("'<") and call.line2 == vim.fn.line("'>")
  local chosen = visual and selection.visual() or selection.lines(call.line1, call.line2)
  return { path = path, start = chosen.start, ["end"] = chosen["end"], selection = chosen.text }
end

--- Ask; the answer comes in the window of the session.
---@param question ide_bridge.Question
function M.ask(question)
  if (question.text or ""):find("%S") then
    sessions.call("ask", question, function(answer) sessions.used(answer.session, answer.title or "") end)
  end
end

--- :IdeBridgeAsk
---@param call ide_bridge.Call
function M.command(call)
  local question = about(call)
  question.new = call.bang or nil
  question.session = not call.bang and sessions.here() or nil
  local function with(text)
    question.text = text
    M.ask(question)
  end
  if call.args ~= "" then
    with(call.args)
  else
    prompt.line("Ask Claude: ", with)
  end
end

--- In the window of a session: the next question there.
function M.next()
  M.command({ range = 0, bang = false, args = "" })
end

return M
