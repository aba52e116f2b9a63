import { type SQL, sql } from 'drizzle-orm';

/** Postgres refuses a jsonb array above 256 MB; a parameter stays far below, to save memory. */
const MAX_PARAMETER_CHARACTERS = 32 * 1024 * 1024;

/**
 * Rows for a `FROM`: one JSON text per row goes in; the columns and `place`, the row's number from 1, come
 * out. All rows travel in one text parameter (a few when they are very large). So they never reach the limit
 * of 65,535 parameters, and every driver sends them alike.
 *
 * `::text::jsonb`: with `::jsonb` alone some drivers encode the text a second time.
 *
 * @param columns the column definitions, such as `id int8, fence int8`
 */
export function jsonRows(rows: readonly string[], columns: string): SQL {
  const names = columns.split(',').map((column) => column.trim().split(' ')[0] ?? '');
  const parts = partsOf(rows).map(
    ({ before, rows }) => sql`
        select ${sql.raw(names.map((name) => `r.${name}`).join(', '))}, ${placeAfter(before)} as place
        from rows from (jsonb_to_recordset(${`[${rows.join(',')}]`}::text::jsonb) as (${sql.raw(columns)}))
          with ordinality as r(${sql.raw(names.join(', '))}, place)`,
  );
  return sql`(${sql.join(parts, sql` union all `)})`;
}

/** Like {@link jsonRows}, for rows that are one value each: columns `element`, a jsonb, and `place`. */
export function jsonElements(values: readonly string[]): SQL {
  const parts = partsOf(values).map(
    ({ before, rows }) => sql`
        select r.element, ${placeAfter(before)} as place
        from jsonb_array_elements(${`[${rows.join(',')}]`}::text::jsonb)
          with ordinality as r(element, place)`,
  );
  return sql`(${sql.join(parts, sql` union all `)})`;
}

/** Postgres knows that a plain `place` is in order, and does not sort. */
function placeAfter(before: number): SQL {
  return sql.raw(before === 0 ? 'r.place' : `${before} + r.place`);
}

function partsOf(rows: readonly string[]): { before: number; rows: string[] }[] {
  const parts: { before: number; rows: string[] }[] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const [index, row] of rows.entries()) {
    if (size + row.length > MAX_PARAMETER_CHARACTERS) {
      parts.push({ before: index, rows: [] });
      size = 0;
    }
    parts.at(-1)?.rows.push(row);
    size += row.length + 1;
  }
  return parts;
}
