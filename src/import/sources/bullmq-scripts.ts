/**
 * What is said to BullMQ's Redis, each script atomically. A job that waits stands in one of BullMQ's lists
 * (`wait`, `paused`) or sorted sets (`prioritized`, `delayed`), and in no other place do its workers look for
 * one. `hold` takes it out of there, so from then on it is the importer's; its hash stays until `drop`.
 *
 * The scripts that change something are refused where the importer has lost its lease: another one works.
 */

const LEASE = `
local function leased()
  local holder = redis.call('GET', KEYS[1])
  if holder and holder ~= ARGV[1] then return false end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return true
end`;

/** KEYS: lease. ARGV: token, milliseconds. */
export const TAKE_LEASE = `${LEASE}
return leased() and 1 or 0`;

/** KEYS: lease. ARGV: token. */
export const END_LEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`;

/** KEYS: wait, paused, prioritized, delayed, waiting-children, active, held. Ids, the first to run first. */
export const LIST = `
local function oldest(key)
  local ids = redis.call('LRANGE', key, 0, -1)
  local turned = {}
  for i = #ids, 1, -1 do turned[#turned + 1] = ids[i] end
  return turned
end
return {oldest(KEYS[1]), oldest(KEYS[2]), redis.call('ZRANGE', KEYS[3], 0, -1),
  redis.call('ZRANGE', KEYS[4], 0, -1), redis.call('ZRANGE', KEYS[5], 0, -1),
  redis.call('LLEN', KEYS[6]), redis.call('HKEYS', KEYS[7])}`;

const READ = `
local function deduplication(prefix, id, deid)
  if not deid then return false end
  local key = prefix .. 'de:' .. deid
  -- One with a time to live is a throttle, which ends by itself.
  if redis.call('GET', key) ~= id or redis.call('PTTL', key) > 0 then return false end
  return deid
end
local function read(prefix, id, state, score)
  local f = redis.call('HMGET', prefix .. id,
    'name', 'data', 'opts', 'timestamp', 'priority', 'atm', 'parentKey', 'rjk', 'deid')
  if not f[1] then return false end
  return {id, state, score or '', f[1], f[2] or 'null', f[3] or '{}', f[4] or '', f[5] or '0', f[6] or '0',
    f[7] or '', f[8] or '', deduplication(prefix, id, f[9]) or ''}
end`;

/** KEYS: prioritized, delayed, waiting-children. ARGV: prefix, state, ids … Changes nothing. */
export const LOOK = `${READ}
local found = {}
for i = 3, #ARGV do
  local job = read(ARGV[1], ARGV[i], ARGV[2], redis.call('ZSCORE', KEYS[2], ARGV[i]))
  if job then found[#found + 1] = job end
end
return found`;

/**
 * KEYS: lease, held, wait, paused, prioritized, delayed. ARGV: token, milliseconds, prefix, ids … Takes the
 * jobs that still wait from BullMQ's workers; returns these, and what was held already of those asked for.
 */
export const HOLD = `${LEASE}${READ}
if not leased() then return redis.error_reply('LEASE') end
local found = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  local state, score = false, false
  local held = redis.call('HGET', KEYS[2], id)
  if held then
    state, score = string.match(held, '^(%S+) ?(.*)$')
  elseif redis.call('EXISTS', ARGV[3] .. id .. ':lock') == 0 then
    score = redis.call('ZSCORE', KEYS[6], id)
    if score then
      redis.call('ZREM', KEYS[6], id)
      state = 'delayed'
    else
      score = redis.call('ZSCORE', KEYS[5], id)
      if score then
        redis.call('ZREM', KEYS[5], id)
        state = 'prioritized'
      -- From the end at which the next job is, where these are.
      elseif redis.call('LREM', KEYS[3], -1, id) == 1 then state = 'wait'
      elseif redis.call('LREM', KEYS[4], -1, id) == 1 then state = 'paused' end
    end
    if state then redis.call('HSET', KEYS[2], id, state .. ' ' .. (score or '')) end
  end
  if state then
    local job = read(ARGV[3], id, state, score)
    if job then found[#found + 1] = job else redis.call('HDEL', KEYS[2], id) end
  end
end
return found`;

/** KEYS: lease, held, events. ARGV: token, milliseconds, prefix, ids … Removes held jobs for good. */
export const DROP = `${LEASE}
if not leased() then return redis.error_reply('LEASE') end
for i = 4, #ARGV do
  local id = ARGV[i]
  if redis.call('HEXISTS', KEYS[2], id) == 1 then
    local key = ARGV[3] .. id
    local deid = redis.call('HGET', key, 'deid')
    if deid and redis.call('GET', ARGV[3] .. 'de:' .. deid) == id then
      redis.call('DEL', ARGV[3] .. 'de:' .. deid, ARGV[3] .. 'dn:' .. deid)
    end
    redis.call('DEL', key, key .. ':logs', key .. ':dependencies', key .. ':processed', key .. ':failed',
      key .. ':unsuccessful')
    redis.call('HDEL', KEYS[2], id)
    redis.call('XADD', KEYS[3], 'MAXLEN', '~', 10000, '*', 'event', 'removed', 'jobId', id, 'prev', 'wait')
  end
end
return 1`;

/** KEYS: lease, held, wait, paused, prioritized, delayed, marker. ARGV: as of DROP. Gives held jobs back. */
export const PUT_BACK = `${LEASE}
if not leased() then return redis.error_reply('LEASE') end
for i = #ARGV, 4, -1 do
  local id = ARGV[i]
  local held = redis.call('HGET', KEYS[2], id)
  if held then
    local state, score = string.match(held, '^(%S+) ?(.*)$')
    if state == 'delayed' then redis.call('ZADD', KEYS[6], score, id)
    elseif state == 'prioritized' then redis.call('ZADD', KEYS[5], score, id)
    elseif state == 'paused' then redis.call('RPUSH', KEYS[4], id)
    else redis.call('RPUSH', KEYS[3], id) end
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZADD', KEYS[7], 0, '0')
  end
end
return 1`;
