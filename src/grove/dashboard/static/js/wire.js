/** Fills in what the server leaves out: fields that have their default value are not sent. Pure. */

/** @typedef {{gang: string, gpus: number, pods: number, reserved: boolean}} Use */
/** @typedef {{domains: Object<string, string>, gpus: number, ready: boolean, cordoned: boolean, taints: string[],
 *   partition: string, uses: Use[]}} NodeCells */
/** @typedef {{unit: string, label: string, domain: string}} PlacedUnit */
/** @typedef {{set: string, phase: string, pods: number, ready: number, gpus: number, created: string,
 *   waiting: Object | null, waitingSince: string, placed: PlacedUnit[], score: number | null}} GangSummary */
/** @typedef {{verdict: string, summary: string, available: number, replicas: number, created: string, graph: string,
 *   reasons: Object[], revision: number}} SetSummary */
/** @typedef {{name: string, levels: {name: string, label: string}[]}} TopologySummary */
/** @typedef {{version: string, now: string, source: Object, viewer: Object, connection: Object,
 *   operator: Object | null, unread: string[], topologies: TopologySummary[], nodes: Object<string, NodeCells>,
 *   gangs: Object<string, GangSummary>, sets: Object<string, SetSummary>, events: Object[]}} Picture */

const USE = { gang: "", gpus: 0, pods: 0, reserved: false };
const NODE = { domains: {}, gpus: 0, ready: true, cordoned: false, taints: [], partition: "", uses: [] };
const GANG = {
  set: "", phase: "", pods: 0, ready: 0, gpus: 0, created: "", waiting: null, waitingSince: "", placed: [], score: null,
};
const SET = {
  verdict: "Unknown", summary: "", available: 0, replicas: 0, created: "", graph: "", reasons: [], revision: 0,
};
const SOURCE = { name: "", live: true, serverVersion: "", takenAt: "" };
const VIEWER = { name: "", namespaces: null, nodes: true, signsIn: false };
const CONNECTION = { connected: true, problem: "", since: "" };

/** @returns {NodeCells} */
export function fullNode(node) {
  const full = { ...NODE, ...node };
  full.uses = full.uses.map((use) => ({ ...USE, ...use }));
  return full;
}

/** @returns {GangSummary} */
export function fullGang(gang) {
  return { ...GANG, ...gang };
}

/** @returns {SetSummary} */
export function fullSet(set) {
  return { ...SET, ...set };
}

/** @returns {TopologySummary} */
export function fullTopology(topology) {
  return { name: topology.name, levels: topology.levels ?? [] };
}

/** The user and what they see. */
export function fullViewer(viewer) {
  return { ...VIEWER, ...viewer };
}

/** Whether the server follows the API server. */
export function fullConnection(connection) {
  return { ...CONNECTION, ...connection };
}

/**
 * A picture with all its fields.
 * @param {Object} sent
 * @returns {Picture}
 */
export function fullPicture(sent) {
  return {
    version: sent.version,
    now: sent.now,
    source: { ...SOURCE, ...sent.source },
    viewer: fullViewer(sent.viewer),
    connection: fullConnection(sent.connection),
    operator: sent.operator ?? null,
    unread: sent.unread ?? [],
    topologies: (sent.topologies ?? []).map(fullTopology),
    nodes: mapped(sent.nodes, fullNode),
    gangs: mapped(sent.gangs, fullGang),
    sets: mapped(sent.sets, fullSet),
    events: sent.events ?? [],
  };
}

/** An object without a prototype: the names of nodes and gangs are input, and `__proto__` is a key like others. */
function mapped(objects, fill) {
  const result = Object.create(null);
  for (const [key, value] of Object.entries(objects ?? {})) {
    result[key] = fill(value);
  }
  return result;
}
