--- Asking the user for a line, in whatever way he has chosen for `vim.ui.input`.
---
--- It does not know what for.
local M = {}

local CANCELLED = "\27"

--- `done` gets what was typed, which may be empty; it is not called when the user gives up.
---@param question string
---@param done fun(typed: string)
function M.line(question, done)
  vim.ui.input({ prompt = question, cancelreturn = CANCELLED }, function(typed)
    vim.cmd("redraw") -- or the question would stay on the screen
    local gave_up = typed == CANCELLED or (typed == nil and vim.fn.has("nvim-0.8") == 1)
    if not gave_up then
      done(typed or "") -- Neovim 0.7 has none for an empty line
    end
  end)
end

return M
