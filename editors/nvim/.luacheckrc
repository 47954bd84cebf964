-- Neovim runs LuaJIT and gives every file the global `vim`, of whose tables options and variables are set.
std = "luajit"
globals = { "vim" }
max_line_length = 115
max_cyclomatic_complexity = 12
