--- The sessions this Neovim takes part in: what happens in each of them, in a window of its own, and what the user
--- wants of them.
---
--- Events may come by the thousand: they are kept, and shown together a few times a second.
---
--- It does not know how an event looks, or how permission is given.
local conversation = require("ide_bridge.conversation")
local link = require("ide_bridge.link")
local page = require("ide_bridge.page")
local say = require("ide_bridge.say")
local window = require("ide_bridge.window")

local M = {}

local api = vim.api
local TOGETHER = 50 -- ms in which events are collected
local PULSE = 3000 -- ms after which a session that should live is looked after
local SHORT = 8
local STATES = {
  starting = "starting…",
  working = "working…",
  waiting = "waiting for you",
  idle = "idle",
  lost = "lost; <CR> asks again",
  stopped = "stopped; <CR> asks again",
  detached = "not attached; <CR> asks again",
}
local ALIVE = { starting = true, working = true, waiting = true, idle = true }
local HELP = {
  "<CR> i   ask the next question",
  "<C-c>    interrupt Claude",
  "q        close the window; the session goes on",
  "",
  "For the question under the cursor, or the only one:",
  "a        allow it once; answer it",
  "A        allow it and the like for the session",
  "d        deny it, and say why",
  "e        change what the tool is given; :w allows that",
  "=        show the change of a file",
}

---@class ide_bridge.Session
---@field id string
---@field story ide_bridge.Story
---@field buffer integer?
---@field state string
---@field title string
---@field number integer  of the last event
---@field whole boolean   whether all of the story has to be shown again

local known = {} ---@type table<string, ide_bridge.Session>
local used ---@type string?
local queue = {} ---@type table[]
local flushing, pulse = false, false

---@param id string
---@return string
function M.short(id)
  return id:sub(1, SHORT)
end

--- Ask the bridge for something that has to do with sessions; a problem is told to the user.
---@param method string
---@param params table
---@param callback fun(result: any)?
---@param refused fun()?
function M.call(method, params, callback, refused)
  link.when_ready(function()
    link.request(method, params, callback or function() end, function(problem)
      local has_none = problem.code == link.METHOD_NOT_FOUND
      say.error(has_none and "This bridge has no sessions; update ide-bridge." or problem.message)
      if refused then
        refused()
      end
    end)
  end)
end

-- -- looking after them ----------------------------------------------------------------------------------------

---@param session ide_bridge.Session
---@return boolean
local function lives(session)
  return ALIVE[session.state] == true
end

---@return ide_bridge.Session[]
local function living()
  return vim.tbl_filter(lives, vim.tbl_values(known))
end

local look_after

--- A bridge that was killed tells nobody, and the one in its place is not noticed here: so it is asked now and
--- then, for as long as something should go on.
function M.look()
  if not pulse then
    pulse = true
    vim.defer_fn(look_after, PULSE)
  end
end

-- -- what happens ----------------------------------------------------------------------------------------------

---@param id string
---@return ide_bridge.Session
local function known_as(id)
  if not known[id] then
    known[id] = { id = id, story = conversation.new(), state = "starting", title = "", number = 0, whole = true }
    M.look()
  end
  return known[id]
end

---@param session ide_bridge.Session
local function label(session)
  if session.buffer and api.nvim_buf_is_valid(session.buffer) then
    vim.b[session.buffer].ide_bridge_state = STATES[session.state] or session.state
    vim.b[session.buffer].ide_bridge_title = session.title
    vim.cmd("redrawstatus!")
  end
end

---@param session ide_bridge.Session
local function write(session)
  if not session.buffer or not api.nvim_buf_is_loaded(session.buffer) then
    session.buffer = window.buffer("ide-bridge://session/" .. M.short(session.id))
    session.whole = true
  end
  if session.whole then
    conversation.again(session.story)
    session.whole = false
  end
  window.write(session.buffer, conversation.take(session.story))
  label(session)
end

---@param session ide_bridge.Session
---@param state string
local function enter(session, state)
  local before = session.state
  session.state = state
  label(session)
  if state == "lost" and before ~= "lost" then
    session.number = 0 -- a bridge that resumes it counts from the beginning
    conversation.withdraw(session.story)
    local text = "The session is lost: its bridge is gone. <CR> asks again and resumes it."
    conversation.add(session.story, { kind = "notice", text = text })
  elseif lives(session) then
    M.look()
  end
end

-- Numbers that begin anew are told of a session from its beginning.
---@param session ide_bridge.Session
---@param number integer
---@param event table
local function take(session, number, event)
  if number == session.number then
    return
  elseif number < session.number then
    session.story, session.whole = conversation.new(), true
  end
  session.number = number
  if event.kind == "state" then
    enter(session, event.state)
  else
    conversation.add(session.story, event)
  end
end

local function flush()
  local news, touched = queue, {}
  queue, flushing = {}, false
  for _, one in ipairs(news) do
    local session = known_as(one.session)
    take(session, one.number, one.event)
    touched[session] = true
  end
  for session in pairs(touched) do
    write(session)
  end
end

--- Something in a session.
---@param told { session: string, number: integer, event: table }
function M.happened(told)
  table.insert(queue, told)
  if not flushing then
    flushing = true
    vim.defer_fn(flush, TOGETHER)
  end
end

---@param told table[]  the sessions of the bridge
local function compare(told)
  flush()
  local states = {}
  for _, session in ipairs(told) do
    states[session.session] = session.state
  end
  for _, session in ipairs(living()) do
    local state = states[session.id] or "lost"
    if state ~= session.state then
      enter(session, state)
      write(session)
    end
  end
end

function look_after()
  pulse = false
  local approvals = require("ide_bridge.approvals")
  if not link.ready() or (#living() == 0 and approvals.count() == 0) then
    return
  end
  link.request("sessions", {}, compare, function() end)
  if approvals.count() > 0 then
    approvals.look()
  end
  M.look()
end

--- Neovim is no longer attached: what happens now is not told.
function M.detached()
  flush()
  for _, session in ipairs(living()) do
    enter(session, "detached")
    write(session)
  end
end

-- -- the window ------------------------------------------------------------------------------------------------

---@param id string
local function prepare(id)
  vim.b.ide_bridge_session = id
  local buffer = api.nvim_get_current_buf()
  local function map(key, action)
    vim.keymap.set("n", key, action, { buffer = buffer, nowait = true, silent = true })
  end
  map("<CR>", function() require("ide_bridge.ask").next() end)
  map("i", function() require("ide_bridge.ask").next() end)
  map("<C-c>", function() M.interrupt("") end)
  map("q", function() window.hide(buffer) end)
  map("?", function() page.show("ide-bridge://keys", HELP) end)
  require("ide_bridge.approvals").map_keys()
end

---@param session ide_bridge.Session
---@param focus boolean
local function show(session, focus)
  write(session)
  window.show(session.buffer, focus, function() prepare(session.id) end)
end

--- The session whose window this is.
---@return string?
function M.here()
  return vim.b.ide_bridge_session
end

--- The id of the question for permission that stands under the cursor in the window of a session.
---@return string?
function M.approval_here()
  local session = known[M.here()]
  local key = session and conversation.key_at(session.story, vim.fn.line(".") - 1)
  return key and key:match("^approval:(.*)")
end

-- -- what the user wants ---------------------------------------------------------------------------------------

--- The user has asked something in a session.
---@param id string
---@param title string
function M.used(id, title)
  used = id
  local session = known_as(id)
  session.title = title
  if not lives(session) then
    enter(session, "starting")
  end
  show(session, M.here() == id)
end

--- Show a session, and go there; one that is not watched yet is told from the beginning.
---@param id string
function M.open(id)
  local session = known_as(id)
  used = id
  if session.number > 0 and lives(session) then
    show(session, true)
    return
  end
  M.call("watchSession", { session = id }, function(answer)
    session.title = answer.session.title or ""
    enter(session, answer.session.state)
    show(session, true)
  end)
end

---@param session table
---@return string
local function listed(session)
  local changed = os.date("%d %b %H:%M", math.floor(session.changed))
  local title = session.title:gsub("%c+", " ")
  return ("%s  %-8s  %s  %s"):format(M.short(session.session), session.state, changed, title)
end

--- :IdeBridgeSessions
function M.list()
  M.call("sessions", {}, function(all)
    table.sort(all, function(one, other) return one.changed > other.changed end)
    local none = { "There are no sessions; :IdeBridgeAsk starts one." }
    page.show("ide-bridge://sessions", #all > 0 and vim.tbl_map(listed, all) or none)
    vim.keymap.set("n", "<CR>", function()
      local chosen = all[vim.fn.line(".")]
      if chosen then
        vim.cmd("close")
        M.open(chosen.session)
      end
    end, { buffer = true, nowait = true })
  end)
end

-- The session named, else that of this window, else the one used last; none, and said so, when there is none.
---@param named string
---@return string?
local function meant(named)
  local session = named ~= "" and named or M.here() or used
  if not session then
    say.error("which session? :IdeBridgeSessions lists them")
  end
  return session
end

---@param named string
function M.interrupt(named)
  local session = meant(named)
  if session then
    M.call("interrupt", { session = session })
  end
end

---@param named string
function M.stop(named)
  local session = meant(named)
  if session then
    M.call("stopSession", { session = session }, function()
      say.info(("session %s is stopped"):format(M.short(session)))
    end)
  end
end

--- The ids that a command may name.
---@return string[]
function M.ids()
  return vim.tbl_map(M.short, vim.tbl_keys(known))
end

return M
