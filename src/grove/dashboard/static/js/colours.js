/**
 * Colours of gangs.
 *
 * The hues are those of Okabe and Ito. Their lightness is chosen per theme so that every colour has a contrast of at
 * least 3:1 with the background, and that any two of them and the grey of foreign load stay apart with protanopia,
 * deuteranopia and tritanopia. Consecutive ones are as different as possible, because consecutive gangs of a set are
 * often neighbours. The order of both lists is the same: a gang keeps its hue in both themes.
 */
export const PALETTE = {
  light: ["#1F63A0", "#C8861D", "#2F8F72", "#8A2F68", "#2B97D4", "#BF5210", "#3A3296"],
  dark: ["#4A90E0", "#F3BE4E", "#3DB489", "#D07FB4", "#9ADBFF", "#DD6B2F", "#7A6BE0"],
};

/** How many textures there are: plain, with a dot, with a bar. They tell gangs of the same colour apart. */
export const TEXTURES = 3;
const COLOURS = PALETTE.light.length;

/** @typedef {{colour: string, texture: number}} GangLook */

/** By store, the number of the look of each gang: the same on every visit of the map. */
const numbers = new WeakMap();

/**
 * The looks of all gangs of a picture. Gangs have different looks as long as there are enough, first by colour, then by
 * texture; a gang keeps its look while it is in the picture, whatever other gangs come and go.
 */
export class GangLooks {
  #store;
  #dark;
  #numbers;

  /**
   * @param {{picture: {gangs: Object<string, {set: string}>}}} store
   * @param {() => boolean} dark
   */
  constructor(store, dark) {
    this.#store = store;
    this.#dark = dark;
    this.#numbers = numbers.get(store) ?? new Map();
    numbers.set(store, this.#numbers);
    this.of = this.of.bind(this);
  }

  /**
   * The look of a gang. One that is not known yet has a look too, which may change when it is.
   * @param {string} gang
   * @returns {GangLook}
   */
  of(gang) {
    if (!this.#numbers.has(gang) && Object.hasOwn(this.#store.picture.gangs, gang)) {
      assignLooks(this.#numbers, this.#store.picture.gangs);
    }
    const palette = this.#dark() ? PALETTE.dark : PALETTE.light;
    const number = this.#numbers.get(gang) ?? gangIndex(gang, "") % COLOURS;
    return { colour: palette[number % COLOURS], texture: Math.floor(number / COLOURS) };
  }

  /** Whether the look of a gang is settled. */
  has(gang) {
    return this.#numbers.has(gang);
  }
}

/** Takes back the looks of gangs that have gone, and gives new gangs those that are used least. */
function assignLooks(known, gangs) {
  const uses = new Array(COLOURS * TEXTURES).fill(0);
  const ofColour = new Array(COLOURS).fill(0);
  const count = (number) => {
    uses[number] += 1;
    ofColour[number % COLOURS] += 1;
  };
  for (const [gang, number] of known) {
    if (Object.hasOwn(gangs, gang)) {
      count(number);
    } else {
      known.delete(gang);
    }
  }
  for (const gang of Object.keys(gangs).filter((candidate) => !known.has(candidate)).sort()) {
    const colour = least(ofColour, gangIndex(gang, gangs[gang].set) % COLOURS);
    const texture = least(Array.from({ length: TEXTURES }, (_, index) => uses[colour + index * COLOURS]), 0);
    known.set(gang, colour + texture * COLOURS);
    count(colour + texture * COLOURS);
  }
}

/** The index of the least count; of equal ones, the first from `start` on. */
function least(counts, start) {
  let best = start;
  for (let step = 1; step < counts.length; step += 1) {
    const index = (start + step) % counts.length;
    best = counts[index] < counts[best] ? index : best;
  }
  return best;
}

/**
 * A number of a gang that does not depend on which other gangs exist: consecutive replicas, and consecutive replicas
 * of a group, have consecutive numbers.
 * @param {string} gang
 * @param {string} set
 * @returns {number}
 */
function gangIndex(gang, set) {
  const rest = gang.startsWith(`${set}-`) ? gang.slice(set.length) : gang;
  const numbers = (rest.match(/\d+/g) ?? []).map((digits) => Number(digits.slice(-6)));
  const last = numbers.pop() ?? 0;
  const before = numbers.reduce((sum, number) => sum + 3 * number, 0);
  return hash(set) + hash(rest.replace(/\d+/g, "")) + before + last;
}

/** FNV-1a, 24 bits of it. */
function hash(text) {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return (value >>> 0) % 0xffffff;
}
