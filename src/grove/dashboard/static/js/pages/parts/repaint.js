/** Draws once for many changes: at most once a frame, not more often than readers can follow, never while hidden. */

const PAUSE_MS = 200;

/**
 * @param {() => void} draw
 * @returns {{request: () => void, now: () => void, cancel: () => void}}
 */
export function repaint(draw) {
  let frame = 0;
  let timer = 0;
  let last = -Infinity;
  const run = () => {
    frame = 0;
    last = performance.now();
    draw();
  };
  const cancel = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = timer = 0;
  };
  return {
    request() {
      if (frame || timer) return;
      const rest = last + PAUSE_MS - performance.now();
      const ask = () => {
        timer = 0;
        frame = requestAnimationFrame(run);
      };
      if (rest > 0) timer = setTimeout(ask, rest);
      else ask();
    },
    now() {
      cancel();
      run();
    },
    cancel,
  };
}
