import { type SQL, sql } from 'drizzle-orm';

/** A window is counted in this many parts, and one more: the present one has only begun. */
const PARTS = sql.raw('20');

/**
 * What of a rate is used up: a lateral row `now`, `slot`, `used`, `oldest` and `kept`, from counts by parts
 * of the window and its length in milliseconds. A start counts until a window has passed since the end of the
 * part in which it may begin at the latest. So no window ever sees more than the limit, and at least 93 % of
 * it can be used. A part is named by the millisecond in which it ends, so its count is still right when the
 * length is changed.
 *
 * @param withinMs how long after this statement a start may begin
 */
export function rateWindow(used: SQL, perMs: SQL, withinMs: SQL): SQL {
  return sql`(
      select x.now, x.slot, e.used, e.oldest, e.kept
      from (
        select n.now, ceil(
          (floor((n.now + ${withinMs}) * ${PARTS} / ${perMs}) + 1) * ${perMs} / ${PARTS}
        )::int8 as slot
        from (select date_part('epoch', statement_timestamp()) * 1000 as now) as n
      ) as x
      cross join lateral (
        select coalesce(sum(e.value::int8), 0)::int8 as used, min(e.key::int8) as oldest,
          coalesce(jsonb_object_agg(e.key, e.value::int8), '{}') as kept
        from jsonb_each_text(${used}) as e where e.key::int8 > x.now - ${perMs}
      ) as e
    )`;
}

/** The counts with `more` in the present part. */
export function rateWith(kept: SQL, slot: SQL, more: SQL): SQL {
  return sql`case when ${more} = 0 then ${kept} else ${kept} || jsonb_build_object(
        ${slot}::text, coalesce((${kept} ->> ${slot}::text)::int8, 0) + ${more}) end`;
}

/** When the oldest counted part leaves the window, and some of the rate is free again. */
export function rateFreeAt(oldest: SQL, perMs: SQL): SQL {
  return sql`to_timestamp((${oldest} + ${perMs}) / 1000.0)`;
}
