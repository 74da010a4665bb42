declare const htm: { bind(h: unknown): (strings: TemplateStringsArray, ...values: any[]) => import("preact").VNode<any> };
export default htm;
