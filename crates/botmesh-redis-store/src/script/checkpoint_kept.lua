-- What a record changes that changes no checkpoint.
local function change_checkpoint()
  return ''
end
