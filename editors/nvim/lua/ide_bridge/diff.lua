--- Diffs: changes that a client proposes, each until the user decides.
---
--- Writing the proposed text keeps it as it is then, closing either side of the diff rejects it. The file itself
--- is never written: the client does that.
---
--- It does not know clients, or how a diff looks on the screen.
local buffers = require("ide_bridge.buffers")
local idle = require("ide_bridge.idle")
local link = require("ide_bridge.link")
local proposal = require("ide_bridge.proposal")
local say = require("ide_bridge.say")
local sides = require("ide_bridge.sides")

local M = {}

local api = vim.api

---@class ide_bridge.Diff
---@field id integer
---@field path string
---@field contents string    as proposed
---@field left integer?      the buffer with the file as it is; none while the diff waits to be shown
---@field right integer?     the buffer with the proposed text
---@field tab integer?
---@field before integer?    the window the user came from
---@field typing boolean?    whether he was typing into a terminal there
---@field looked_at boolean? whether its tab was the current one when it was closed
---@field pretends integer?  the text for which it says to be modified although the user has changed nothing

local diffs = {} ---@type table<integer, ide_bridge.Diff>

---@return string
local function name(path)
  return vim.fn.fnamemodify(path, ":~:.")
end

---@return integer
function M.count()
  return vim.tbl_count(diffs)
end

---@return string[]
function M.paths()
  return vim.tbl_map(function(diff) return diff.path end, vim.tbl_values(diffs))
end

-- -- deciding --------------------------------------------------------------------------------------------------

---@param diff ide_bridge.Diff
---@param decision "kept"|"rejected"
local function decide(diff, decision)
  diffs[diff.id] = nil
  local contents = decision == "kept" and proposal.final(diff.contents, diff.right) or nil
  link.notify("diffDecided", { diff = diff.id, decision = decision, contents = contents })
  local details = { diff = diff.id, path = diff.path, decision = decision }
  require("ide_bridge.events").raise("DiffDecided", details)
end

-- What the user has not saved in the file's own buffer is lost only if he says so.
---@param diff ide_bridge.Diff
---@return boolean
local function would_lose(diff)
  local own = buffers.loaded(diff.path)
  if not own or not vim.bo[own].modified then
    return false
  end
  local mine = api.nvim_buf_get_lines(own, 0, -1, false)
  return not diff.right or not vim.deep_equal(mine, api.nvim_buf_get_lines(diff.right, 0, -1, false))
end

---@param diff ide_bridge.Diff
---@param force boolean
---@return boolean kept
local function keep(diff, force)
  if not force and would_lose(diff) then
    say.error(':w! keeps it, "do" takes the left side over, which has unsaved changes: ' .. name(diff.path))
    return false
  end
  decide(diff, "kept")
  return true
end

-- The diff of this tab, or the only one; none, and said so, when it is not clear.
---@return ide_bridge.Diff?
local function meant()
  local here = api.nvim_get_current_tabpage()
  for _, diff in pairs(diffs) do
    if diff.tab == here then
      return diff
    end
  end
  if M.count() == 1 then
    return diffs[next(diffs)]
  end
  local several = "several diffs are open: go to the tab of the one you mean"
  say.error(M.count() == 0 and "there is no diff to decide" or several)
end

---@param force boolean
function M.accept(force)
  local diff = meant()
  if diff and keep(diff, force) then
    sides.wipe(diff)
  end
end

function M.reject()
  local diff = meant()
  if diff then
    decide(diff, "rejected")
    sides.wipe(diff)
  end
end

--- Neovim quits.
---@return integer how many there were
function M.reject_all()
  local open = vim.tbl_values(diffs)
  for _, diff in ipairs(open) do
    decide(diff, "rejected")
  end
  return #open
end

-- -- what the user does with the windows -----------------------------------------------------------------------

---@class ide_bridge.Deciders  what becomes of a diff whose windows are used
local deciders = {}

---@param diff ide_bridge.Diff
---@param force boolean
---@return boolean done  whether the buffer counts as written
function deciders.written(diff, force)
  if diffs[diff.id] ~= diff then
    say.warning("this change is not proposed any more")
    return true
  end
  local kept = keep(diff, force)
  if kept then
    vim.schedule(function() sides.wipe(diff) end) -- the command that wrote it may want to close the window itself
  end
  return kept
end

---@param diff ide_bridge.Diff
function deciders.closed(diff)
  if diffs[diff.id] == diff then
    decide(diff, "rejected")
    sides.wipe(diff)
  end
end

-- -- what the bridge asks --------------------------------------------------------------------------------------

local function open(diff)
  sides.open(diff, deciders)
  require("ide_bridge.events").raise("DiffOpened", { diff = diff.id, path = diff.path })
  local own = buffers.loaded(diff.path)
  if own and vim.bo[own].modified then
    local remedy = ':w! keeps, :q rejects, "do" takes the left side over, which has unsaved changes: '
    say.warning(remedy .. name(diff.path))
  else
    say.info(":w keeps the right side, :q rejects it: " .. name(diff.path))
  end
end

--- Show a diff as soon as the user is not typing; one that is shown already is shown anew.
---@param proposed { diff: integer, path: string, contents: string }
function M.show(proposed)
  M.close(proposed.diff)
  local diff = { id = proposed.diff, path = proposed.path, contents = proposed.contents }
  diffs[diff.id] = diff
  idle.wait(function()
    if diffs[diff.id] == diff then
      open(diff)
    end
  end)
  if not diff.right then
    say.info(("a change of %s is proposed; leave this mode to see it"):format(name(diff.path)))
  end
end

--- Close a diff without a decision; one that is gone already is fine.
---@param id integer
function M.close(id)
  local diff = diffs[id]
  diffs[id] = nil
  if diff and diff.right then
    idle.wait(function() sides.wipe(diff) end)
  end
end

function M.close_all()
  for _, id in ipairs(vim.tbl_keys(diffs)) do
    M.close(id)
  end
end

return M
