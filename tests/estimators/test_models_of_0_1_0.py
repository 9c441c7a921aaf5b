"""Files of drosurv 0.1.0 still load: eight small models that it saved, with what it predicted from them."""

import base64
import json
import lzma

import numpy as np
import pytest

from drosurv import estimators
from drosurv.estimators.persistence import load

# Fitted on 24 patients by 0.1.0; sizes by name in the first line, then the files one after the other.
SAVED = """
{Wp48S^xk9=GL@E0stWa8~^|S5YJf5;BBA`$Xx(Eh=gYJ0Cy0^;j?P&{vz0p$VozpH*A?$7oUfh=+Q2p+Oft1)qTZRrBQdUol&lf
2J&N0wo8LRHkpOc^NI@PYV5p3`i(jt$$eh{5+7l2VwJDV5aIQ=Ejxzd8Ots?CC6Z%t;-|-3aWJFFX`?Nn;rM?W6w5srpl@WFSnlF
2@h58pj);H1_*bKr*0cS(`6&_G$*Ivyn)VlTVo%c<&k55klKErhuSMiA1zd>Eah1={In(0Hq3&+vHJG_6I#H<<l1)@9~!U$!I=Eh
U&khX4<_I9E%*JxSO$sGirj5D#|{I*4D-qegq4Lgz;O7#Req-7F^eMIkXdmjZ#EqZD=p|~gUg?RbY6p4yzrqlu|b3;D&w#tYmY)~
6EEG2KYHI?r=|P;7=}n@Hn=?P87mCgtSzzYpQ;vgp3q|q(TQ^_>%AOqScq__{0OmK(V6yjy^N;J3J5Y1Qi&G0z_*5WdgQE714u_(
azk(7D?cnKd6HSzXBQWrb%nLt*137wBkxk>;K$y+)Uz8Evpc>)+Nm4r8SlYoMn%UZxal~$S%1dtB3{2iz@elHTfVhHUKe>pqDGrZ
PTqs-y{}q#bJC(U`_ws}Bo&b~#{;@8RN4iB%9`)CKNn5Y`7r)SYs}s-**9|s4YP+?pR}_n5bp~MHGL9kpCEVQ=V-jJIPW^s%#Kxm
uxxjDHI@8j$PTM$N8qzdZ&jCigOy*B?Cgwc?Ie>)d5Oij{}k?^{f^{NMM|kfFrg0CjG4Vu$=p#GN3Nj7jx80fTtN@h*X#<0!cL5k
AbV|2tzXe74#x)@@x1xb+^~e%R6<->V-C$3qY48Uv#x!%%VcZ|q6EMVaBWB1^$@}hYH>iYFtwxuNmC#<Kw7=z*r$MO*X{5;OpkiY
aIao_E=myVTgGhIlJV57Mg7C7)Qto3LHiYkbCEngAIaz%=!50Lu=Ax}Pmi!4=Q_w$K*OBu=Ss*-NQ>dz#g9dEyx6{tsxWz<K~~`6
w5r-qQS@T+`nog8`Od~k6uSqO8K+!RgnLIk`do{(ATL-LSn~>Dq(~Twd#QjgzkkucqRqr2AXG-x65m&IF--70@Qd)3@otdh*3|;r
_&-g-45n*qy|0V~-$$0D4S0wiC8fLLHOw1K^Yj%ld$kOz`12wZ@ZL1^nq}9}#;La+<u{ZW=Ad|SWU{;3^{h!snY{2&s$g<AR&i;&
OU0IosBaIK=pdNFkBy=&BNexl#4>=w9F*J*h-Res5!n>S%;_^;(*T>k`~POsZk~6}TIEY-g5uKh{a811^iCUAX&(WNA_Go$OZlZ=
S_e#fBsp({<S!p_8%gY1U5kEv7R%+pH@~vaHHqWa){uxbv+SnZ;U08RfG2;xngCy)mmFxh*l4RZW4yV<l$co!Z9N%P-<YOp=ix$&
UU$E<fOx9WO_KsXLJ`PKH+TZB0NPk*SzySaw;zbiA6$rCeV@lncle|ZmETHNlOCQ2bNdsxZBDo|SmjQN&7?_&;Z?cI>FwA=X-(q#
=>A-(|1CjgqX0c8^g#@#vCOO7A<Ly=sn!&j6iR}<_2~qX178A#V)&UQ00Q`B2V+Y}tPgs)lo4}Fv@D?+{U|e4952YsYhSp7d)u3!
>k`_UEWp#o4ZOtKGJ8Vz4BuxE|23{CGYB0OVu8l{x#)f}5~p3W%Gv7l^12oPcAXR|<socJBo)MB+sM7w+d7-*k}1aPR#a#i%KV*o
{3QO#I{rup&F~;LyEc~94A``Aqu0<wXpcL6?N#N-9agQe(R}b`rC-I1<by!I9_k%v!HJ*NmHOrFOB{f~L0ry>zNAilWU|;(V)ci5
GiNG)Dp>Cp{{PSY1BxHj1l)s63Z5tgp2&YRmAyCnc*OmxlDr4(swNF(dK^)IO>GL}$eYjU2uio5e!~?AlK{}j7&hGKQQ2-%B!aM1
IRbd}0(&$QAwdk1z8p5X9+XZ*&dX07#p_)a2KXKzNK)GSqRd}jqH;*82KjMqPVe_sXkP6|i=`h=I$q@<BnznmEAop^l9*>+zV<H{
6xWch?QVq$@u(NXOU2Az^2#EWm<5*F*!+hDN9WZbu%n0i8k90G8j?e&&W*n<;Dmgrt`kT%Jkz|7A=zK&G%vj)&#TobKNv@w>HDo^
MH!&^5U|!}m+W=!=OIw&0=!S}OTp&mc9_@wtP?6ljKJh%RRWLHQQ}KFbXO}pm<loTh4hg_(Nx_ZUB6y&A=y~y-BBhoFOrCF9XDhT
{#d%X<4J3KwX#uf*#d_#jU~=?KEOE_)IFO0*|x=2iRioA@{Mt2PEmd$aCdOkM`+RghnhW;PHbC_oxJytsz<Bp_2c&@NNv6bl_QG3
Mhg2A$~G$XVVZP-2#lv{%bHL7t*?}9==;}u-qVtU!f|tjfyJlZiwhJsBRn5rty-owg*Fy>-7snCHJaf&>^ZNf>L&v{z#y3YyzR%`
_LwB|&jj!6yRWC(E5Y>xkXfXAL2q)W1elkOeFKqL;ZU+H0Ss;l!GFS;*-}I`Zyhi`GmGl@ODQ5BPmTlUD_FxN6p2egMxWE5kN1c1
7=<`-ZQE@BJL>b7doG_CEm%EJ1ouC49zuw8HyOHKd38914)es*DVb9r?Q_=52ZI(8-b)uOkGv4Op77d{XcL#}#kS=5E~C-Eo)b9B
_}|oJX6t@A1QXWXBle`Zt+n3#T=O2f5eoh(<rrmoO>uIczeZ@2jTZY+P#V?u8D2;QeJ6(q?G-gQi-?E0&1LVx?h+_ceG_-(s454d
GeI;$Bar!@5_y)lb8K1R?5*84b_Jm-WY!aby+<=ajm-?EHJ%00<*H_d_Se)FrKK~lch~(>gwIDR{J+NObgceP`~cc0W$U_(Ti8+>
|Aw2%zA-$1I0L#%5(t)y5lC(zt|1~jh`W06R6oY<jdV5zprdZ&Aep6xPVxSE06!VlMI?NL^X4-45uxp}q-?+}tBv!%EUhluKmT})
q#@^COcNJrUr8%WUes>Z%aam+z0w*FHGZNIx~Ziar-N|n(*ssoNT^t#637|uBPFX?ROP<lvBX@g;=tq<9U0A-Lne?8L7kgrgn!Lc
4)3jRds2CX|Eq4TFG{LTT7~orgMfaL{yIX}8WC3l99AX_^h4KQN`(b(!V86*pMu~o7V#<$pml)O0ngYCn98@&P4gN;#a&J0KCmF4
l#x3Ah|#_-Zk%b%!20i3)?SbI+!kqba(+*w<)^l&VvOpHnfU;DfechF-e;q^IF4#iE+4pP@hvqCHn5DR^U6Or$XP5orFBQB(Ow@5
Jk3$69`n;aPOB-mlhsy_De4ygCv*1amaCQLhYi6>H)ilSFW0F!?-4M<=MoJ>us7GA-PN_Gpc$jC73ClAUOJ+ru_EQ1Zs&lmDm#d5
R{(ltID!nvHz?(#JiyhMgM){u@|jTjJEh=U=2gMVXfb4hqtmqt+hha_uXb1BaxJL^VR)t69CE*GL`ZkbrYmI}MNml9&~}_7o3IlX
_5|}mmTytpx|Ys8{tT}CJq9_&<MLyBW?YX9o-9aW1$+O@Z8S6#ea7Rf5<!E{o|E%ELb1@iT(8J*pGG6Aqr*%-q&MMt=br3MDKqQ4
ZDPIj$+iU{#_fX`5q_@5%g?_%D1Y<yQjfb12Z|O=yvxLFe47z_D=f+wu%ZzhohB&~u@$WJZHlVqCi%f1%>2sGw0&mwNhGEjC~a4j
^Z%G4;8LVzq5xkCdr%&~e9UUXpeP@!KOAt_s<foNF?n9iP?C^${8IP$6;4tG5-vV0!>fd4T=ZgO6;oW>7be5ih?6;3>UBZ+ep%0j
Rx*r}3u+;y!e~3pNa#yh9V!)55C};hH1&9!X;QVpg^F(I8@m)kbL|@le;;fZa|J)P@%3#f*o4vV8p09Tt6JgN;K-<2&hHn{vsJWN
NqQ};{w&aQxg@_0@(gfZxn@;&ksG=h!3{QY&$9q?M29ulCymJW8J3_IgSFDmtOdC|3g*;rK1_B)Xx?kSxRCEB3H=jv%x)FR{wg@{
6+2$(CfP4*3kRQWv%Vn>tXdY2qrqD5vI%D#&xx&N-K~t<Qd+(x>7=yLzG>502SU{Dw{%Or6ehxO&+a~h*KAv2teq^Qlxe3nHCA0J
(D1tYTEitC{vH3yugHH&wAkmdE5c5bK_2kfvYrwlJI%6FH#hvMu^u|J^5ypsOaFf(pY#e83d&=a3tU0=Zj)W=?n+Go!zN^NRnNAt
K~gqJh!cm<kb_ptH0B6}&AiZDMV0^n2A@e!-BPQ;00HC~q1yofO6_1yvBYQl0ssI200dcD
"""
X = [[0.1, -0.1], [0.6, 0.1]]
TIMES = [2.0, 5.0]
# Log risks of the two patients, and their survival at the two times.
PREDICTED = {
    "CoxPH": (
        [0.048437223, 0.430955623],
        [[0.931759698, 0.685108493], [0.901571996, 0.574417725]],
    ),
    "CoxPH-mlp": (
        [0.018336482, -0.063119359],
        [[0.930327968, 0.743400263], [0.935598614, 0.760845574]],
    ),
    "DROCox": (
        [0.040049167, 0.357732306],
        [[0.927496917, 0.678004105], [0.901756485, 0.586304458]],
    ),
    "DROCoxSplit": (
        [0.038179403, 0.519697840],
        [[0.946064634, 0.723295914], [0.914170286, 0.591968667]],
    ),
    "GroupDROCox": (
        [0.034069252, 0.384536785],
        [[0.941765795, 0.688489095], [0.918345160, 0.588650357]],
    ),
    "NullModel": (
        [0.0, 0.0],
        [[0.937128313, 0.701188620], [0.937128313, 0.701188620]],
    ),
    "RegularizedCox": (
        [-0.032486837, 0.049624982],
        [[0.932378165, 0.719873696], [0.926808207, 0.699907585]],
    ),
    "SubgroupRobustCox": (
        [0.017183652, 0.273806585],
        [[0.927079021, 0.644343831], [0.906768674, 0.566596112]],
    ),
}


def saved_files():
    sizes, _, content = lzma.decompress(base64.b85decode("".join(SAVED.split()))).partition(b"\n")
    start = 0
    for name, size in json.loads(sizes).items():
        yield name, content[start : start + size]
        start += size


@pytest.mark.parametrize(
    ("name", "data"), list(saved_files()), ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_model_of_0_1_0_predicts_as_it_did(name, data, tmp_path):
    (tmp_path / "model").write_bytes(data)
    model = load(tmp_path / "model")
    scores, survival = PREDICTED[name]
    assert type(model) is getattr(estimators, name.partition("-")[0])
    np.testing.assert_allclose(model.predict(X), scores, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(model.predict_survival_function(X, times=TIMES), survival, rtol=1e-6)
    assert model.n_patients_ == 24
    model.save(tmp_path / "again")
    np.testing.assert_array_equal(load(tmp_path / "again").predict(X), model.predict(X))
