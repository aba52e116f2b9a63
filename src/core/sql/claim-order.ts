import type { RawRow } from './executor.ts';

/** One priority of one queue, or a part of it, and where a claim starts in it. */
export interface Band {
  readonly priority: number;
  /** Jobs with an earlier `run_at` are left out; milliseconds since 1970, or `-Infinity` for none. */
  readonly floorMs: number;
  /** Jobs with this `run_at` or a later one are left out; a whole number. @default undefined none */
  readonly ceilingMs?: number | undefined;
}

export interface ClaimPlaces {
  /** In the order in which their jobs are claimed. */
  readonly bands: readonly Band[];
  /** Instead of the bands: those of these jobs that can be claimed. */
  readonly ids?: readonly number[] | undefined;
}

export function isWhole({ ceilingMs }: Band): boolean {
  return ceilingMs === undefined;
}

/** The rows of one claim in its order. Compares rows, because a Date loses the microseconds of `run_at`. */
export function inClaimOrder(rows: readonly RawRow[], { bands, ids }: ClaimPlaces): readonly RawRow[] {
  if (ids === undefined && bands.every(isWhole) && areInOrder(rows)) return rows;
  const placeOf = ids === undefined ? placesIn(bands) : placesAmong(ids);
  return rows
    .map((row) => ({ row, place: placeOf(row), runAt: Number(row.run_at), id: Number(row.id) }))
    .sort((a, b) => a.place - b.place || a.runAt - b.runAt || a.id - b.id)
    .map(({ row }) => row);
}

/** As they mostly come: of one priority, and written in the order in which they are due. */
function areInOrder(rows: readonly RawRow[]): boolean {
  const priority = rows[0]?.priority;
  let runAt = Number.NEGATIVE_INFINITY;
  let id = 0;
  for (const row of rows) {
    const nextAt = Number(row.run_at);
    const nextId = Number(row.id);
    if (row.priority !== priority || nextAt < runAt || (nextAt === runAt && nextId < id)) return false;
    runAt = nextAt;
    id = nextId;
  }
  return true;
}

/** Which band a row was found in. */
function placesIn(bands: readonly Band[]): (row: RawRow) => number {
  const byPriority = new Map<number, { place: number; ceilingMs: number }[]>();
  for (const [place, { priority, ceilingMs = Number.POSITIVE_INFINITY }] of bands.entries()) {
    const ofPriority = byPriority.get(priority) ?? [];
    byPriority.set(priority, ofPriority);
    ofPriority.push({ place, ceilingMs });
  }
  return ({ priority, run_at }) => {
    const band = byPriority.get(Number(priority))?.find(({ ceilingMs }) => Number(run_at) < ceilingMs);
    return band?.place ?? bands.length;
  };
}

function placesAmong(ids: readonly number[]): (row: RawRow) => number {
  const places = new Map(ids.map((id, place) => [id, place]));
  return ({ id }) => places.get(Number(id)) ?? ids.length;
}
