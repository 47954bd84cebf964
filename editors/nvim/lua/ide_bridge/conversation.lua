--- A conversation as lines to read: what happens in a session, one block of lines for each thing.
---
--- Most blocks are added at the end; an answer grows while it is said, a tool gets its result, a question its
--- answer. Whoever shows the lines takes what has changed since he last did.
---
--- It does not know buffers, windows or the bridge.
local lines = require("ide_bridge.lines")
local question = require("ide_bridge.question")

local M = {}

local LINES = 5000 -- the oldest blocks go when there are more
local PROMPT = 12 -- lines shown of what was asked
local RESULT = 5 -- of what a tool gives
local INDENT = "    "

---@class ide_bridge.Block
---@field kind string
---@field key string?     by which it is found again
---@field lead string[]   what separates it from the block before
---@field lines string[]
---@field title string?
---@field agent string?   the indent of what a sub-agent does

---@class ide_bridge.Story
---@field blocks ide_bridge.Block[]
---@field keyed table<string, ide_bridge.Block>
---@field live ide_bridge.Block?  an answer that is being said
---@field height integer          all lines together
---@field fresh integer           the first line that was not taken yet; 0 is the first of all
---@field dropped integer         how many lines went at the top since

---@return ide_bridge.Story
function M.new()
  return { blocks = {}, keyed = {}, height = 0, fresh = 0, dropped = 0 }
end

-- -- blocks ----------------------------------------------------------------------------------------------------

---@param story ide_bridge.Story
---@param line integer
local function touch(story, line)
  story.fresh = math.min(story.fresh, line)
end

-- Where a block begins; it is most often one of the last.
---@param story ide_bridge.Story
---@param wanted ide_bridge.Block
---@return integer
local function first_of(story, wanted)
  local index = #story.blocks
  local first = story.height - #story.blocks[index].lines
  while story.blocks[index] ~= wanted do
    index = index - 1
    first = first - #story.blocks[index].lines
  end
  return first
end

-- Calls of tools stand together; everything else has an empty line before it.
---@param story ide_bridge.Story
---@param kind string
---@param key string?
---@param content string[]
---@return ide_bridge.Block
local function append(story, kind, key, content)
  local last = story.blocks[#story.blocks]
  local lead = (not last or (kind == "tool" and last.kind == "tool")) and {} or { "" }
  local block = { kind = kind, key = key, lead = lead, lines = vim.list_extend(vim.list_slice(lead), content) }
  touch(story, story.height)
  table.insert(story.blocks, block)
  story.height = story.height + #block.lines
  if key then
    story.keyed[key] = block
  end
  return block
end

---@param story ide_bridge.Story
---@param block ide_bridge.Block
---@param content string[]
local function replace(story, block, content)
  local now = vim.list_extend(vim.list_slice(block.lead), content)
  if not vim.deep_equal(now, block.lines) then
    touch(story, first_of(story, block))
    story.height = story.height + #now - #block.lines
    block.lines = now
  end
end

-- Many go at once, or each new line would move all others.
---@param story ide_bridge.Story
local function forget(story)
  local gone, count = 0, 0
  while story.height - count > LINES * 0.9 and gone < #story.blocks - 1 do
    gone = gone + 1
    count = count + #story.blocks[gone].lines
    if story.blocks[gone].key then
      story.keyed[story.blocks[gone].key] = nil
    end
  end
  story.blocks = vim.list_slice(story.blocks, gone + 1)
  story.height = story.height - count
  story.dropped = story.dropped + math.min(count, story.fresh)
  story.fresh = math.max(0, story.fresh - count)
end

-- -- what happens ----------------------------------------------------------------------------------------------

local events = {}

function events.prompt(story, event)
  story.live = nil
  local by = event.by or ""
  local whose = (by == "" or by == "Neovim") and "" or ("(%s) "):format(by)
  local asked = lines.cut(lines.of(event.text), PROMPT)
  local first = ("❯ %s%s"):format(whose, asked[1])
  append(story, "prompt", nil, vim.list_extend({ first }, lines.indented(vim.list_slice(asked, 2), "  ")))
end

function events.text(story, event)
  story.live = story.live or append(story, "said", nil, { "" })
  local so_far = story.live.lines
  touch(story, first_of(story, story.live) + #so_far - 1)
  local pieces = lines.of(so_far[#so_far] .. event.text)
  table.remove(so_far)
  vim.list_extend(so_far, pieces)
  story.height = story.height + #pieces - 1
end

function events.said(story, event)
  local said = lines.of(event.text)
  if event.agent then
    append(story, "said", nil, lines.indented(said, "  "))
  elseif story.live then
    replace(story, story.live, said)
    story.live = nil
  else
    append(story, "said", nil, said)
  end
end

function events.thinking(story, event)
  append(story, "thought", nil, { "✻ " .. table.concat(lines.cut(lines.of(vim.trim(event.text)), 1), " ") })
end

function events.tool(story, event)
  story.live = nil
  local agent, title = event.agent and "  " or "", lines.one(event.title)
  local block = append(story, "tool", "tool:" .. event.id, { ("%s● %s"):format(agent, title) })
  block.agent, block.title = agent, title
end

function events.toolResult(story, event)
  local block = story.keyed["tool:" .. event.id]
  if not block then
    return
  end
  local shown = { ("%s%s %s"):format(block.agent, event.ok and "✓" or "✗", block.title) }
  local text = event.text:gsub("%s+$", "")
  if text ~= "" then
    vim.list_extend(shown, lines.indented(lines.cut(lines.of(text), RESULT), block.agent .. INDENT))
  end
  replace(story, block, shown)
end

function events.approval(story, event)
  local approval = event.approval
  local block = append(story, "approval", "approval:" .. approval.id, question.lines(approval))
  block.title = lines.one(approval.title)
end

function events.approvalClosed(story, event)
  local block = story.keyed["approval:" .. event.approval]
  if block then
    local mark = event.outcome == "allowed" and "✓" or "✗"
    replace(story, block, { ("%s %s: %s"):format(mark, block.title, question.outcome(event)) })
    story.keyed[block.key] = nil
    block.key = nil
  end
end

function events.result(story, event)
  story.live = nil
  local cost = event.cost and (", $%.4f"):format(event.cost) or ""
  local spent = ("%.1f s%s"):format(event.seconds, cost)
  local reason = (event.reason or "") ~= "" and event.reason or event.text or ""
  local line = event.ok and "— done: " .. spent or ("— not done: %s (%s)"):format(lines.one(reason), spent)
  append(story, "result", nil, { line })
end

function events.notice(story, event)
  append(story, "notice", nil, { "! " .. lines.one(event.text) })
end

function events.ended(story, event)
  story.live = nil
  local why = (event.text or "") ~= "" and ": " .. lines.one(event.text) or ""
  append(story, "notice", nil, { ("— the session has ended%s; <CR> asks again and resumes it"):format(why) })
end

--- One event, as the bridge tells it. What is not known is not shown.
---@param story ide_bridge.Story
---@param event table
function M.add(story, event)
  local verb = events[event.kind]
  if verb then
    verb(story, event)
    if story.height > LINES then
      forget(story)
    end
  end
end

--- Nobody can answer any more what is still asked.
---@param story ide_bridge.Story
function M.withdraw(story)
  for _, key in ipairs(vim.tbl_keys(story.keyed)) do
    local id = key:match("^approval:(.*)")
    if id then
      events.approvalClosed(story, { approval = id, outcome = "withdrawn" })
    end
  end
end

-- -- showing it ------------------------------------------------------------------------------------------------

---@class ide_bridge.Change
---@field dropped integer  as many lines are gone at the top
---@field from integer     from this line on (0 is the first one)
---@field lines string[]   there are these

--- What has changed since this was asked before.
---@param story ide_bridge.Story
---@return ide_bridge.Change
function M.take(story)
  local index, first = #story.blocks + 1, story.height
  while first > story.fresh do
    index = index - 1
    first = first - #story.blocks[index].lines
  end
  local fresh = {}
  for number = index, #story.blocks do
    local block = story.blocks[number]
    vim.list_extend(fresh, block.lines, math.max(1, story.fresh - first + 1))
    first = first + #block.lines
  end
  local change = { dropped = story.dropped, from = story.fresh, lines = fresh }
  story.fresh, story.dropped = story.height, 0
  return change
end

--- All of it is to be taken again.
---@param story ide_bridge.Story
function M.again(story)
  story.fresh, story.dropped = 0, 0
end

--- The key of the block a line (0 is the first one) belongs to.
---@param story ide_bridge.Story
---@param line integer
---@return string?
function M.key_at(story, line)
  local index, first = #story.blocks + 1, story.height
  while index > 1 and first > line do
    index = index - 1
    first = first - #story.blocks[index].lines
  end
  return story.blocks[index] and story.blocks[index].key
end

return M
