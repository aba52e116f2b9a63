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

/** KEYS: lease, origin. ARGV: token, milliseconds. Returns by what the rows tell this Redis from others. */
export const TAKE_LEASE = `${LEASE}
if not leased() then return false end
redis.call('SET', KEYS[2], ARGV[1], 'NX')
return redis.call('GET', KEYS[2])`;

/** KEYS: lease, held. ARGV: token, milliseconds, ids … Whether all are held by this importer. */
export const HOLDS = `${LEASE}
if not leased() then return redis.error_reply('LEASE') end
for i = 3, #ARGV do if redis.call('HEXISTS', KEYS[2], ARGV[i]) == 0 then return 0 end end
return 1`;

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
  local key = prefix .. 'de:' .. (deid or '')
  if not deid or redis.call('GET', key) ~= id then return '', 0 end
  -- One with a time to live is a throttle, which ends by itself.
  return redis.call('PTTL', key) > 0 and '' or deid, redis.call('EXISTS', prefix .. 'dn:' .. deid)
end
local function read(prefix, id, state, score)
  local f = redis.call('HMGET', prefix .. id,
    'name', 'data', 'opts', 'timestamp', 'priority', 'atm', 'parentKey', 'rjk', 'deid')
  if not f[1] then return false end
  local deid, next = deduplication(prefix, id, f[9])
  return {id, state, score or '', f[1], f[2] or '', f[3] or '', f[4] or '', f[5] or '0', f[6] or '0',
    f[7] or '', f[8] or '', deid, next}
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
local wanted, open = {}, 0
for i = 4, #ARGV do
  local id = ARGV[i]
  if redis.call('HEXISTS', KEYS[2], id) == 0 and redis.call('EXISTS', ARGV[3] .. id .. ':lock') == 0 then
    local state, key = 'delayed', KEYS[6]
    local score = redis.call('ZSCORE', key, id)
    if not score then
      state, key = 'prioritized', KEYS[5]
      score = redis.call('ZSCORE', key, id)
    end
    if score then
      redis.call('ZREM', key, id)
      redis.call('HSET', KEYS[2], id, state .. ' ' .. score)
    else
      -- One that has ended since it was listed would be looked for among all that wait.
      local job = redis.call('HMGET', ARGV[3] .. id, 'name', 'finishedOn')
      if job[1] and not job[2] then
        wanted[id] = true
        open = open + 1
      end
    end
  end
end
-- One walk for all, from the end at which the next job is: an LREM for each would walk past the others each
-- time.
local function take(key, state)
  local taken, last = 0, redis.call('LLEN', key) - 1
  while open > 0 and last >= 0 do
    local first = math.max(last - 999, 0)
    local ids = redis.call('LRANGE', key, first, last)
    for at = #ids, 1, -1 do
      local id = ids[at]
      if wanted[id] then
        wanted[id] = nil
        redis.call('HSET', KEYS[2], id, state .. ' ')
        redis.call('LSET', key, first + at - 1, '')
        taken, open = taken + 1, open - 1
      end
    end
    last = first - 1
  end
  if taken > 0 then redis.call('LREM', key, -taken, '') end
end
take(KEYS[3], 'wait')
take(KEYS[4], 'paused')
local found = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  local held = redis.call('HGET', KEYS[2], id)
  if held then
    local job = read(ARGV[3], id, string.match(held, '^(%S+) ?(.*)$'))
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

/**
 * KEYS: lease, held, wait, paused, prioritized, delayed, marker, meta. ARGV: as of DROP. Gives held jobs
 * back.
 *
 * To the list of now, since the queue may have been paused or resumed meanwhile: BullMQ finds nothing in the
 * list `paused` of a queue that is not, and 5 overwrites one list by the other.
 */
export const PUT_BACK = `${LEASE}
if not leased() then return redis.error_reply('LEASE') end
for i = #ARGV, 4, -1 do
  local id = ARGV[i]
  local held = redis.call('HGET', KEYS[2], id)
  if held then
    local state, score = string.match(held, '^(%S+) ?(.*)$')
    if state == 'delayed' then redis.call('ZADD', KEYS[6], score, id)
    elseif state == 'prioritized' then redis.call('ZADD', KEYS[5], score, id)
    else redis.call('RPUSH', redis.call('HEXISTS', KEYS[8], 'paused') == 1 and KEYS[4] or KEYS[3], id) end
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZADD', KEYS[7], 0, '0')
  end
end
return 1`;
