// All scenes (states.mjs, account.mjs, portal.mjs), in an order in which none is in the way of another.
import { accountScenes } from "./account.mjs";
import { portalScenes } from "./portal.mjs";
import {
  boughtScenes,
  checkoutScenes,
  deliveryScenes,
  depositScenes,
  esimScenes,
  mailedScenes,
  otherScenes,
  payScenes,
  refillScenes,
  shortScenes,
  topupScenes,
} from "./states.mjs";

// They come before one window, `page`, which is led from each to the next. boughtScenes wait least at the end.
export async function* scenes(page) {
  yield* deliveryScenes();
  yield* checkoutScenes();
  yield* shortScenes();
  yield* topupScenes();
  yield* mailedScenes();
  yield* otherScenes();
  yield* payScenes();
  yield* esimScenes();
  yield* refillScenes();
  yield* accountScenes(page);
  yield* portalScenes(page);
  yield* depositScenes();
  yield* boughtScenes();
}
