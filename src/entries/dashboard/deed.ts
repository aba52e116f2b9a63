import type { GoingOn } from './pages/many.tsx';
import type { NoticeCode } from './parts/notice.tsx';

/** What an action came to. */
export interface Deed {
  readonly notice: NoticeCode;
  readonly count?: number;
  readonly ids?: readonly number[];
  readonly target?: Readonly<Record<string, string>>;
  readonly outcome: string;
  /** The page that it leads to. @default the one that its form was on */
  readonly to?: string;
  /** Of many: how many it could not be done with. */
  readonly left?: number;
  /** Of many: that there are more. */
  readonly goesOn?: GoingOn;
}
