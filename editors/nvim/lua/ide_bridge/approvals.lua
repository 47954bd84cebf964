--- Approvals: what Claude wants to be allowed, until somebody answers, here or elsewhere; the first answer counts.
---
--- Nothing here waits for the user: he is told in a line, and answers by a command or by a key when he likes.
---
--- It does not know what allowing something does.
local events = require("ide_bridge.events")
local link = require("ide_bridge.link")
local page = require("ide_bridge.page")
local prompt = require("ide_bridge.prompt")
local question = require("ide_bridge.question")
local say = require("ide_bridge.say")
local sessions = require("ide_bridge.sessions")

local M = {}

local LIST = "ide-bridge://approvals"
local TOO_QUICK = 300 -- ms in which nobody can have read what is asked now

local open = {} ---@type table<string, ide_bridge.Approval>
local listed = {} ---@type ide_bridge.Approval[]  in the order of the lines of the list
local mine = {} ---@type table<string, boolean>   those that are just being answered here
local changed = 0 -- when there was last something else to answer than before

---@return integer
function M.count()
  return vim.tbl_count(open)
end

-- -- what the bridge tells -------------------------------------------------------------------------------------

---@param approval ide_bridge.Approval
function M.asked(approval)
  if open[approval.id] then
    return
  end
  open[approval.id] = approval
  changed = vim.loop.now()
  local how = ("Claude asks (:IdeBridgeApprove %s, :IdeBridgeDeny %s): "):format(approval.id, approval.id)
  say.warning(how .. approval.title)
  sessions.look()
  vim.cmd("redrawstatus!")
  events.raise("ApprovalAsked", approval)
end

--- One is over.
---@param closed { approval: string, outcome: string, by: string?, reason: string? }
function M.closed(closed)
  local approval = open[closed.approval]
  if not approval then
    return
  end
  open[approval.id] = nil
  if not mine[approval.id] then
    changed = vim.loop.now()
    say.info(("%s: %s"):format(question.outcome(closed), approval.title))
  end
  require("ide_bridge.editing").forget(approval.id)
  vim.cmd("redrawstatus!")
  events.raise("ApprovalClosed", closed)
end

--- Ask which are open: those that came before, and those that went unheard with a bridge that died.
function M.look()
  link.request("approvals", {}, function(told)
    local ids = {}
    for _, approval in ipairs(told) do
      ids[approval.id] = true
      M.asked(approval)
    end
    for _, id in ipairs(vim.tbl_keys(open)) do
      if not ids[id] then
        M.closed({ approval = id, outcome = "withdrawn" })
      end
    end
  end, function() end)
end

--- Neovim has just been attached: something may have been asked before. A bridge without sessions is not bothered.
function M.begin()
  link.request("status", {}, function(told)
    for _, session in ipairs(told.sessions or {}) do
      if #(session.approvals or {}) > 0 then
        M.look()
        return
      end
    end
  end, function() end)
end

function M.reset()
  open, mine = {}, {}
end

-- -- answering -------------------------------------------------------------------------------------------------

--- Tell the bridge what the user has decided.
---@param approval ide_bridge.Approval
---@param answer table
function M.decide(approval, answer)
  local id = approval.id
  mine[id] = true
  local params = vim.tbl_extend("error", { approval = id }, answer)
  sessions.call("decide", params, function(decided)
    M.closed({ approval = id, outcome = decided.outcome, by = decided.by, reason = answer.reason or "" })
    mine[id] = nil
    say.info(("%s: %s"):format(decided.outcome, approval.title))
  end, function()
    mine[id] = nil
    M.look()
  end)
end

-- The answer in words: numbers stand for what may be chosen.
---@param asked table
---@param typed string
---@return string
local function chosen(asked, typed)
  local labels = {}
  for number in typed:gmatch("[^,]+") do
    local option = (asked.options or {})[tonumber(number:match("^%s*(%d+)%s*$"))]
    if not option then
      return typed
    end
    table.insert(labels, option.label)
  end
  return table.concat(labels, ", ")
end

-- One question after the other; who leaves one out answers none.
---@param questions table[]
---@param answers table<string, string>
---@param done fun(answers: table<string, string>)
local function answer_all(questions, answers, done)
  local asked = questions[1]
  if not asked then
    done(answers)
    return
  end
  local several = asked.multiSelect and "; several as 1,2" or ""
  local choices = table.concat(question.choices(asked), "\n")
  prompt.line(("%s\nNumber, or your own words%s: "):format(choices, several), function(typed)
    if typed:find("%S") then
      answers[asked.question] = chosen(asked, vim.trim(typed))
      answer_all(vim.list_slice(questions, 2), answers, done)
    end
  end)
end

---@param approval ide_bridge.Approval
---@param for_session boolean
local function allow(approval, for_session)
  if approval.kind ~= "question" then
    M.decide(approval, { behavior = "allow", forSession = for_session or nil })
    return
  end
  answer_all(approval.input.questions or {}, {}, function(answers)
    M.decide(approval, { behavior = "allow", answers = answers })
  end)
end

-- The one named, else the only one, in the window of a session the only one there; none, and said so, when that is
-- not clear.
---@param named string?
---@return ide_bridge.Approval?
local function meant(named)
  if named and named ~= "" then
    if not open[named] then
      say.error(named .. " is not open; :IdeBridgeApprovals lists what is")
    end
    return open[named]
  end
  local session = sessions.here()
  local candidates = vim.tbl_filter(function(approval)
    return not session or approval.session == session
  end, vim.tbl_values(open))
  if #candidates == 1 then
    return candidates[1]
  end
  say.error(#candidates == 0 and "nothing is asked" or "several things are asked; :IdeBridgeApprovals lists them")
end

--- :IdeBridgeApprove; with the "!" for the session.
---@param named string?
---@param for_session boolean
function M.approve(named, for_session)
  local approval = meant(named)
  if approval then
    allow(approval, for_session)
  end
end

--- :IdeBridgeDeny [id] [reason]
---@param words string
function M.deny(words)
  local first, rest = words:match("^(%S*)%s*(.*)$")
  local named = open[first] and first
  local approval = meant(named)
  if approval then
    M.decide(approval, { behavior = "deny", reason = named and rest or words })
  end
end

-- -- by keys ---------------------------------------------------------------------------------------------------

---@param approval ide_bridge.Approval
local function deny_with_reason(approval)
  prompt.line("Deny it, because: ", function(reason)
    M.decide(approval, { behavior = "deny", reason = reason })
  end)
end

-- The id of the one under the cursor.
---@return string?
local function here()
  if vim.fn.bufname() == LIST then
    local approval = listed[vim.fn.line(".")]
    return approval and approval.id
  end
  return sessions.approval_here()
end

---@param action fun(approval: ide_bridge.Approval)
---@return fun()
local function with_one(action)
  return function()
    local approval = meant(here())
    if not approval then
      return
    elseif vim.loop.now() - changed < TOO_QUICK then
      say.warning("what is asked has just changed; press it again if you mean this: " .. approval.title)
    else
      action(approval)
    end
  end
end

--- In a buffer that shows what is asked.
function M.map_keys()
  local function map(key, action)
    vim.keymap.set("n", key, with_one(action), { buffer = true, nowait = true, silent = true })
  end
  map("a", function(approval) allow(approval, false) end)
  map("A", function(approval) allow(approval, true) end)
  map("d", deny_with_reason)
  map("e", function(approval) require("ide_bridge.editing").open(approval) end)
  map("=", function(approval) require("ide_bridge.change").show(approval) end)
end

-- -- the list --------------------------------------------------------------------------------------------------

---@param approval ide_bridge.Approval
---@return string
local function line_of(approval)
  local title = approval.title:gsub("%c+", " ")
  return ("%s  %s  %s"):format(approval.id, sessions.short(approval.session), title)
end

--- :IdeBridgeApprovals
function M.list()
  listed = vim.tbl_values(open)
  table.sort(listed, function(one, other) return one.asked < other.asked end)
  page.show(LIST, #listed > 0 and vim.tbl_map(line_of, listed) or { "Nothing is asked." })
  M.map_keys()
  vim.keymap.set("n", "<CR>", function()
    local approval = open[here() or ""]
    if approval then
      vim.cmd("close")
      sessions.open(approval.session)
    end
  end, { buffer = true, nowait = true })
end

--- The ids that a command may name.
---@return string[]
function M.ids()
  local ids = vim.tbl_keys(open)
  table.sort(ids)
  return ids
end

return M
